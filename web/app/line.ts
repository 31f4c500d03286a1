import { Client, subscriptionExchange, type CombinedError, type OperationResult } from '@urql/core';
import { Refused, type Transport } from '@tidemark/kit';
import { createClient } from 'graphql-ws';

/** A connection of one person, and what ends it. */
export interface Line extends Transport {
  readonly client: Client;
  close(): void;
}

/** Opens a websocket of its own for urql, over which everything goes. It comes back whatever happens, until it is closed. */
export function openLine(token: string): Line {
  const url = new URL('/graphql', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  const watchers = new Set<{ connected(): void; lost(): void }>();
  const socket = createClient({
    url: url.href,
    lazy: false,
    connectionParams: () => ({ Authorization: `Bearer ${token}` }), // a function: an app would ask for a new token
    shouldRetry: () => true,
    retryAttempts: Number.MAX_SAFE_INTEGER,
    keepAlive: 10_000,
    onNonLazyError: () => {},
    on: {
      connected: () => watchers.forEach((on) => on.connected()),
      closed: () => watchers.forEach((on) => on.lost()),
    },
  });
  const client = new Client({
    url: '/graphql',
    preferGetMethod: false,
    exchanges: [
      subscriptionExchange({
        enableAllOperations: true,
        forwardSubscription: ({ query = '', variables, operationName }) => ({
          subscribe: (sink) => ({
            unsubscribe: socket.subscribe({ query, variables: variables ?? null, operationName: operationName ?? null }, sink as never),
          }),
        }),
      }),
    ],
  });
  return {
    client,
    async ask(document, variables) {
      const [definition] = document.definitions;
      const mutation = definition?.kind === 'OperationDefinition' && definition.operation === 'mutation';
      const result = await (mutation
        ? client.mutation(document, variables)
        : client.query(document, variables, { requestPolicy: 'network-only' })
      ).toPromise();
      return dataOf(result);
    },
    follow(document, variables, sink) {
      const { unsubscribe } = client.subscription(document, variables).subscribe((result) => {
        if (result.error) sink.error(asRefused(result.error));
        else if (result.data) sink.next(result.data);
      });
      return unsubscribe;
    },
    watch(on) {
      watchers.add(on);
      return () => watchers.delete(on);
    },
    close: () => void socket.dispose(),
  };
}

function dataOf<Data>({ data, error }: Pick<OperationResult<Data>, 'data' | 'error'>): Data {
  if (error) throw asRefused(error);
  if (data === undefined) throw new Error('nothing came back');
  return data;
}

/** The code of what the server refused, or whatever else went wrong. */
export function asRefused(error: CombinedError): Error {
  const [first] = error.graphQLErrors;
  return first ? new Refused(first.message, String(first.extensions['code'])) : (error.networkError ?? error);
}
