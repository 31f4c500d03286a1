import type { TypedDocumentNode } from '@graphql-typed-document-node/core';

/** What the server answers instead of data. Anything else that goes wrong is the network's, and passes. */
export class Refused extends Error {
  constructor(
    message: string,
    /** As in `extensions.code` of the API. */
    readonly code: string,
  ) {
    super(message);
    this.name = 'Refused';
  }
}

/** Codes of what is refused for what it says, and so again however often it is tried. */
const final = new Set([
  'BAD_USER_INPUT',
  'FORBIDDEN',
  'NOT_FOUND',
  'CONFLICT',
  'QUERY_TOO_LARGE',
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
]);

/** Whether something that failed may succeed when it is tried again: with a new token, say, or once the server is mended. */
export function passes(error: unknown): boolean {
  return !(error instanceof Refused) || !final.has(error.code);
}

/** Where a stream's events go. */
export interface Sink<Data> {
  next(data: Data): void;
  /** The stream has ended. It is over for good, and the connection may well be there. */
  error(error: unknown): void;
}

/**
 * A connection of one person, in the hands of whatever GraphQL client an app has. One that comes back by itself and
 * subscribes again, as graphql-ws does, is welcome to: what it tells once more is taken as it should be.
 */
export interface Transport {
  ask<Data, Variables extends Record<string, unknown>>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
  ): Promise<Data>;
  /** Returns what ends the stream. */
  follow<Data, Variables extends Record<string, unknown>>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
    sink: Sink<Data>,
  ): () => void;
  /** Calls back each time that a connection was made, and each time that one was lost. Returns what ends that. */
  watch(on: { connected(): void; lost(): void }): () => void;
}
