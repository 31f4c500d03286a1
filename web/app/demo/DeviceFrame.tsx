import { useState, useSyncExternalStore } from 'react';
import { compareIds, type Badge, type CatchUp, type Shown } from '@tidemark/kit';
import { ChannelView } from './ChannelView';
import type { Installation } from './installation';

export function DeviceFrame({ installation, remove }: { installation: Installation; remove: () => void }) {
  const { device, kind, name, person } = installation;
  const shown = useSyncExternalStore(device.subscribe, device.show);
  const [messages, setMessages] = useState(false);
  const [problem, setProblem] = useState<string>();
  const on = shown.status !== 'off';
  /** Does what somebody asked for, and says so where it cannot be. */
  const attempt = (what: Promise<unknown>) => {
    setProblem(undefined);
    what.catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  };
  const toggle = () => {
    setMessages(false);
    if (on) installation.turnOff();
    else installation.turnOn();
  };
  const toggleMessages = () => {
    if (messages) device.closeMessages();
    else device.openMessages();
    setMessages(!messages);
  };
  const open = shown.badges.find(({ channel }) => channel.id === shown.open?.channelId);
  const total = shown.total?.unread.label ?? '0';
  const writers = shown.icon?.label ?? '0';

  return (
    <article className={`device ${kind} ${shown.status}`} aria-label={name} data-person={person.id}>
      <header>
        <h2>{name}</h2>
        <button type="button" role="switch" aria-checked={on} aria-label={`${name} is on`} className="switch" onClick={toggle}>
          <span aria-hidden="true">{on ? 'On' : 'Off'}</span>
        </button>
        <button type="button" className="quiet" aria-label={`Put ${name} away`} onClick={remove}>
          ×
        </button>
      </header>
      <div className="bar">
        <p>
          <span className="icon-app" aria-hidden="true" /> App icon <Count label={total} what="unread in all" />
        </p>
        <button type="button" aria-expanded={messages} disabled={!on} onClick={toggleMessages}>
          Messages <Count label={writers} what="people wrote" />
        </button>
      </div>
      <p role="status" className="catch-up">
        {sayCatchUp(shown)}
      </p>
      {problem && (
        <p role="alert" className="problem">
          {problem}
        </p>
      )}
      <div className="screen">
        {messages && <Writers shown={shown} />}
        {!messages && (kind === 'laptop' || !open) && (
          <ul className="channels" aria-label={`Channels on ${name}`}>
            {shown.badges.map((badge) => (
              <li key={badge.id}>
                <button
                  type="button"
                  className={badge.muted ? 'muted' : ''}
                  aria-current={badge === open ? 'true' : undefined}
                  onClick={() => attempt(device.open(badge.channel.id))}
                >
                  <span className="name">{nameOf(shown, badge)}</span>
                  {badge.muted && <span className="tag">muted</span>}
                  {badge.mentions.count > 0 && (
                    <span className="tag at">
                      @<span className="sr"> mentions you: </span>
                      {badge.mentions.label}
                    </span>
                  )}
                  <Count label={badge.unread.label} what="unread" />
                </button>
              </li>
            ))}
          </ul>
        )}
        {!messages && open && <ChannelView installation={installation} shown={shown} badge={open} attempt={attempt} />}
        {!messages && !open && kind === 'laptop' && <p className="empty">Open a channel.</p>}
      </div>
      <Cursors shown={shown} name={name} />
    </article>
  );
}

function Count({ label, what }: { label: string; what: string }) {
  return (
    <span className={label === '0' ? 'count none' : 'count'}>
      <span>{label}</span>
      <span className="sr"> {what}</span>
    </span>
  );
}

function Writers({ shown }: { shown: Shown }) {
  // Whoever is shown leaves the list a moment later, so the screen keeps those that it has shown.
  const [kept, setKept] = useState<{ id: string; displayName: string }[]>(() => shown.icon?.senders.map(({ user }) => user) ?? []);
  const fresh = (shown.icon?.senders ?? []).map(({ user }) => user).filter(({ id }) => !kept.some((user) => user.id === id));
  if (fresh.length > 0) setKept([...fresh, ...kept]);
  return (
    <section className="writers" aria-label="Messages">
      <h3>New people wrote to you</h3>
      {kept.length === 0 ? (
        <p className="empty">Nobody since you looked.</p>
      ) : (
        <ul>
          {kept.map(({ id, displayName }) => (
            <li key={id}>{displayName}</li>
          ))}
        </ul>
      )}
      <p className="note">This screen has been opened: who is listed counts no more. The badges stay.</p>
    </section>
  );
}

function Cursors({ shown, name }: { shown: Shown; name: string }) {
  return (
    <div className="cursors" tabIndex={0} role="region" aria-label={`Cursors of ${name}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">channel</th>
            <th scope="col">newest</th>
            <th scope="col">read</th>
            <th scope="col">holds</th>
            <th scope="col">told</th>
            <th scope="col">epoch</th>
            <th scope="col">version</th>
          </tr>
        </thead>
        <tbody>
          {shown.badges.map((badge) => (
            <tr key={badge.id}>
              <th scope="row">{nameOf(shown, badge)}</th>
              <td>{badge.highWaterSeq}</td>
              <td>{badge.lastReadSeq}</td>
              <td>{shown.held.get(badge.channel.id)?.seq ?? '–'}</td>
              <td>{shown.confirmed.get(badge.channel.id) ?? '–'}</td>
              <td>{badge.readEpoch}</td>
              <td>{badge.version}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function nameOf(shown: Shown, badge: Badge): string {
  return shown.channels.get(badge.channel.id)?.name ?? `channel ${badge.channel.id}`;
}

function sayCatchUp(shown: Shown): string {
  const waiting = shown.waitingReads > 0 ? ` ${shown.waitingReads === 1 ? 'A read waits' : `${shown.waitingReads} reads wait`} to be told.` : '';
  switch (shown.status) {
    case 'off':
      return `Off. It shows what it knew.${waiting}`;
    case 'connecting':
      return `Connecting…${waiting}`;
    case 'live':
      return shown.catchUp ? `Live. ${sum(shown, shown.catchUp)}` : 'Live.';
  }
}

function sum(shown: Shown, { channels, took }: CatchUp): string {
  if (channels.length === 0) return `It lacked nothing (${Math.round(took)} ms).`;
  const fresh = channels.filter((c) => c.kind === 'resync' && c.reason === 'NEW_DEVICE').length;
  const parts = [...channels]
    .sort((a, b) => compareIds(a.channelId, b.channelId))
    .filter((c) => fresh < 2 || c.kind === 'diff' || c.reason !== 'NEW_DEVICE')
    .map((c) => {
      const where = shown.channels.get(c.channelId)?.name ?? c.channelId;
      if (c.kind === 'resync') return `${where}: resync, ${c.reason}, ${messages(c.messages)}`;
      return `${where}: diff, ${messages(c.messages)}${c.deleted > 0 ? `, ${c.deleted} deleted` : ''}`;
    });
  if (fresh >= 2) parts.unshift(`${fresh} channels: resync, NEW_DEVICE`);
  return `Caught up in ${Math.round(took)} ms. ${parts.join('; ')}.`;
}

function messages(n: number): string {
  return n === 1 ? '1 message' : `${n} messages`;
}
