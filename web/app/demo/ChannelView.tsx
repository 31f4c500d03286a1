import { useEffect, useRef, useState } from 'react';
import type { Badge, Message, Shown } from '@tidemark/kit';
import { nameOf } from './DeviceFrame';
import { Receipt } from './Receipt';
import type { Installation } from './installation';

interface Props {
  installation: Installation;
  shown: Shown;
  badge: Badge;
  attempt: (what: Promise<unknown>) => void;
}

export function ChannelView({ installation, shown, badge, attempt }: Props) {
  const { device, person, kind } = installation;
  const channelId = badge.channel.id;
  const messages = shown.open?.messages ?? [];
  const on = shown.status !== 'off';
  const list = useRef<HTMLOListElement>(null);
  const newest = messages.at(-1)?.seq;
  useEffect(() => {
    if (list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [newest, channelId]);
  const counts = (m: Message) => m.seq > badge.lastReadSeq && !m.deleted && m.sender.id !== person.id;
  const ownNewest = messages.findLast((m) => m.sender.id === person.id && !m.deleted)?.seq;
  const firstUnread = messages.find(counts)?.seq;
  return (
    <section className="channel" aria-label={`${nameOf(shown, badge)} on ${installation.name}`}>
      <div className="head">
        {kind === 'phone' && (
          <button type="button" className="quiet" aria-label="Back to the channels" onClick={() => device.close()}>
            ‹
          </button>
        )}
        <h3>{nameOf(shown, badge)}</h3>
        <button type="button" disabled={!on} aria-pressed={badge.muted} onClick={() => attempt(device.setMuted(channelId, !badge.muted))}>
          Mute
        </button>
        <button type="button" disabled={badge.lastReadSeq >= badge.highWaterSeq} onClick={() => attempt(device.markRead(channelId, badge.highWaterSeq))}>
          Read all
        </button>
      </div>
      <ol className="messages" ref={list} tabIndex={0} aria-label="Messages, oldest first">
        {messages.map((message) => (
          <li key={message.seq} className={message.sender.id === person.id ? 'own' : ''}>
            {message.seq === firstUnread && (
              <p className="new" aria-hidden="true">
                new
              </p>
            )}
            <MessageView message={message} own={message.sender.id === person.id} on={on} read={message.seq <= badge.lastReadSeq} counts={counts(message)} {...{ device, attempt }} />
            {message.seq === ownNewest && <Receipt key={`${channelId}:${message.seq}`} {...{ installation, channelId, on }} seq={message.seq} />}
          </li>
        ))}
      </ol>
      <Composer {...{ shown, installation, channelId, on, attempt }} />
    </section>
  );
}

interface MessageProps {
  message: Message;
  own: boolean;
  on: boolean;
  read: boolean;
  counts: boolean;
  device: Installation['device'];
  attempt: (what: Promise<unknown>) => void;
}

function MessageView({ message, own, on, read, counts, device, attempt }: MessageProps) {
  const { channelId, seq } = message;
  return (
    <div className={`message ${counts ? 'unread' : 'read'}`} data-seq={seq}>
      <p className="by">
        <b>{message.sender.displayName}</b> <small>{seq}</small>
        {message.mentionsViewer && <span className="tag at">@ you</span>}
      </p>
      <p className="body">{message.deleted ? <i>deleted</i> : message.body}</p>
      <p className="acts">
        <button type="button" disabled={read} aria-label={`read to here, message ${seq}`} onClick={() => attempt(device.markRead(channelId, seq))}>
          read to here
        </button>
        <button type="button" disabled={!on} aria-label={`unread from message ${seq} on`} onClick={() => attempt(device.markUnread(channelId, seq))}>
          unread
        </button>
        {own && !message.deleted && (
          <button type="button" disabled={!on} aria-label={`delete message ${seq}`} onClick={() => attempt(device.delete(channelId, seq))}>
            delete
          </button>
        )}
      </p>
    </div>
  );
}

function Composer({ shown, installation, channelId, on, attempt }: Omit<Props, 'badge'> & { channelId: string; on: boolean }) {
  const [body, setBody] = useState('');
  const [mention, setMention] = useState('');
  const others = shown.channels.get(channelId)?.members.nodes.filter(({ id }) => id !== installation.person.id) ?? [];
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (!body.trim()) return;
        attempt(
          installation.device.send(channelId, body, mention ? [mention] : []).then(() => {
            setBody('');
            setMention('');
          }),
        );
      }}
    >
      <input aria-label="Message" placeholder={on ? 'Write…' : 'Off'} value={body} disabled={!on} onChange={(event) => setBody(event.target.value)} />
      <select aria-label="Mention somebody" value={mention} disabled={!on} onChange={(event) => setMention(event.target.value)}>
        <option value="">@</option>
        {others.map(({ id, displayName }) => (
          <option key={id} value={id}>
            @{displayName}
          </option>
        ))}
      </select>
      <button type="submit" disabled={!on}>
        Send
      </button>
    </form>
  );
}
