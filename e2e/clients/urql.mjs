// urql, with its calls by HTTP and its subscriptions by graphql-ws.
import { Client, fetchExchange, subscriptionExchange } from '@urql/core';
import { drive } from './driver.mjs';
import { openSocket } from './socket.mjs';

drive((app) => {
  const { url, token } = app;
  const socket = openSocket(app);
  const client = new Client({
    url,
    requestPolicy: 'network-only',
    fetch: async (input, init) =>
      fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${await token('call')}` } }),
    exchanges: [
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: (request) => ({
          subscribe: (sink) => ({ unsubscribe: socket.subscribe({ ...request, query: request.query ?? '' }, sink) }),
        }),
      }),
    ],
  });
  let followed;
  return {
    call: async (query, variables) => {
      const kind = query.startsWith('mutation') ? 'mutation' : 'query';
      const { data, error } = await client[kind](query, variables).toPromise();
      if (error) throw error;
      return { data };
    },
    follow: (query, next, failed) => {
      const take = ({ data, error }) => (error ? failed(error) : next({ data }));
      followed = client.subscription(query, {}).subscribe(take);
    },
    end: () => {
      followed.unsubscribe();
      socket.dispose();
    },
  };
});
