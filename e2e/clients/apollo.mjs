// Apollo Client, with its calls by HTTP and its subscriptions by graphql-ws. Badges go past its cache, which takes
// whatever comes last; what is kept is the one with the larger version.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { SetContextLink } from '@apollo/client/link/context';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { OperationTypeNode } from 'graphql';
import { drive } from './driver.mjs';
import { openSocket } from './socket.mjs';

drive((app) => {
  const { url, token } = app;
  const socket = openSocket(app);
  const client = new ApolloClient({
    cache: new InMemoryCache(),
    defaultOptions: { query: { fetchPolicy: 'no-cache' }, mutate: { fetchPolicy: 'no-cache' } },
    link: ApolloLink.split(
      ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
      new GraphQLWsLink(socket),
      ApolloLink.from([
        new SetContextLink(async ({ headers }) => ({
          headers: { ...headers, Authorization: `Bearer ${await token('call')}` },
        })),
        new HttpLink({ uri: url }),
      ]),
    ),
  });
  return {
    call: (query, variables) =>
      query.startsWith('mutation')
        ? client.mutate({ mutation: gql(query), variables })
        : client.query({ query: gql(query), variables }),
    follow: (query, next, failed) =>
      client.subscribe({ query: gql(query), fetchPolicy: 'no-cache' }).subscribe({
        next: ({ data, error }) => (error ? failed(error) : next({ data })),
        error: failed,
        complete: () => failed('it was completed'),
      }),
    end: () => {
      client.stop();
      socket.dispose();
    },
  };
});
