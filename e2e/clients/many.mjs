// Many clients follow the badges of one person. Whenever each of them has been told how things stand once more, it
// prints what they were told last, and with which codes their sockets have been closed until then.
//
//   node many.mjs URL TOKEN CLIENTS
//
// It ends at the end of stdin.
import { openSocket } from './socket.mjs';

const [url, token, clients] = process.argv.slice(2);
const badgeChanged = 'subscription { badgeChanged { snapshot total { unread { label } } } }';
const told = Array.from({ length: Number(clients) }, () => ({ snapshots: 0, label: null }));
let closed = {};
let rounds = 0;

const sockets = told.map((client) => {
  const socket = openSocket({
    socketURL: url.replace(/^http/, 'ws'),
    token: async () => token,
    closed: (code) => (closed[code] = (closed[code] ?? 0) + 1),
  });
  const next = ({ data: { badgeChanged } }) => {
    client.label = badgeChanged.total.unread.label;
    if (badgeChanged.snapshot) client.snapshots++;
    if (!told.every(({ snapshots }) => snapshots > rounds)) return;
    rounds++;
    console.log(JSON.stringify({ labels: [...new Set(told.map(({ label }) => label))], closed }));
    closed = {};
  };
  const failed = (error) => console.error(error);
  socket.subscribe({ query: badgeChanged }, { next, error: failed, complete: () => {} });
  return socket;
});

process.stdin.on('end', () => sockets.forEach((socket) => socket.dispose())).resume();
