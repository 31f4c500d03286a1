// A socket of graphql-ws as an app should have it: it comes back whatever happens, each time with a token of that
// moment.
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { retryWait } from './driver.mjs';

export const openSocket = ({ socketURL, token, closed }) =>
  createClient({
    url: socketURL,
    webSocketImpl: WebSocket,
    connectionParams: async () => ({ Authorization: `Bearer ${await token('stream')}` }),
    retryAttempts: Infinity,
    shouldRetry: () => true, // by default it gives up where a server cannot be reached
    retryWait,
    on: { closed: ({ code }) => closed(code) },
  });
