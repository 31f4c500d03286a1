// The client graphql-ws, with all operations on its socket.
import { drive } from './driver.mjs';
import { openSocket } from './socket.mjs';

drive((app) => {
  const client = openSocket(app);
  return {
    call: (query, variables) =>
      new Promise((resolve, reject) => {
        let result;
        const complete = () => resolve(result);
        client.subscribe({ query, variables }, { next: (next) => (result = next), error: reject, complete });
      }),
    follow: (query, next, failed) =>
      client.subscribe({ query }, { next, error: failed, complete: () => failed('it was completed') }),
    end: () => client.dispose(),
  };
});
