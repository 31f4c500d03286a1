// The client graphql-sse, in its distinct connections mode: each operation is a request, answered by events.
import { createClient } from 'graphql-sse';
import { drive, retryWait } from './driver.mjs';

drive(({ url, token }) => {
  const client = createClient({
    url,
    headers: async ({ query }) => ({
      Authorization: `Bearer ${await token(query.startsWith('subscription') ? 'stream' : 'call')}`,
    }),
    retryAttempts: Infinity,
    retry: retryWait,
  });
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
