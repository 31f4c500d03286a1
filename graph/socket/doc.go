// Package socket serves GraphQL over websockets, as the protocol graphql-transport-ws has it, and holds what all
// connections that stay open have in common.
//
// A connection is one goroutine: its reader. What a message asks for is done on goroutines that live for just that
// long, and so is the delivery of what a subscription has to say. One timer stands for all that the connection waits for.
//
//	          connection_init            ack                    ping every PingEvery
//	opened ─────────────────> signing in ────> open ───────────────────────────────────> open
//	   │                         │               │                                         │
//	   │ InitTimeout: 4408       │ 4403, 1013    │ silence: 4408   the token's end: 4403   │ drained: 1012
//	   └─────────────────────────┴───────────────┴──────> closed <─────────────────────────┘
//
// What is promised:
//
//   - A message is acted on once those before it are understood. Answers come in the order in which they are ready.
//   - Of a subscription, a client is sent what its stream has when it is taken: of badges the newest, so who reads slowly
//     gets less, and never what is old. What could not be read is tried again, so the last state arrives.
//   - A subscription is never completed by the server. It ends with an error that says why, or with the connection.
//   - After error, or the client's own complete, nothing more is said of an operation, and its id is free.
//   - Clients of the protocol come back after the codes 1012 (restart), 1013 (try later), 4403 (a token is needed) and
//     4408 (silence), and after a lost connection. All other codes say that the client is at fault, and are final.
//   - A write that takes longer than WriteTimeout ends the connection. Nobody else waits for it.
//   - When a connection has ended, so has everything that it began.
package socket
