// urql alone, with its subscriptions by server-sent events. It does not come back by itself when a stream ends: an app
// that wants that subscribes again, as is done here.
import { Client, fetchExchange } from '@urql/core';
import { onEnd, pipe, subscribe } from 'wonka';
import { drive, retryWait } from './driver.mjs';

// Of a subscription that is ended while it reads, urql leaves the aborted read to nobody.
process.on('unhandledRejection', (reason) => {
  if (reason?.name !== 'AbortError') throw reason;
});

drive(({ url, token }) => {
  const client = new Client({
    url,
    requestPolicy: 'network-only',
    fetchSubscriptions: true,
    fetch: async (input, init) => {
      const what = init.body?.includes('subscription') ? 'stream' : 'call';
      return fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${await token(what)}` } });
    },
    exchanges: [fetchExchange],
  });
  let followed;
  let ended = false;
  return {
    call: async (query, variables) => {
      const kind = query.startsWith('mutation') ? 'mutation' : 'query';
      const { data, error } = await client[kind](query, variables).toPromise();
      if (error) throw error;
      return { data };
    },
    follow: function follow(query, next, failed) {
      followed = pipe(
        client.subscription(query, {}),
        onEnd(async () => {
          await retryWait();
          if (!ended) follow(query, next, failed);
        }),
        subscribe(({ data, error }) => {
          if (data) next({ data });
          else if (!error?.networkError) failed(error);
        }),
      );
    },
    end: () => {
      ended = true;
      followed.unsubscribe();
    },
  };
});
