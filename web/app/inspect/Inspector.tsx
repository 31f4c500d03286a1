import { useEffect, useMemo, useState } from 'react';
import { Provider, useQuery, useSubscription } from 'urql';
import { compareIds } from '@tidemark/kit';
import { Wave } from '../Wave';
import { InspectionChangedDocument, InspectionDocument, PeopleDocument, type ExplanationFragment, type InspectionQuery } from '../generated';
import { asRefused, openLine } from '../line';
import { settings } from '../settings';

/** Confirmations of devices are not told live: this is how old they may look. */
const refreshEvery = 5000;

export function Inspector() {
  const [token, setToken] = useState(settings.token ?? '');
  const [userId, setUserId] = useState(() => new URLSearchParams(location.search).get('user') ?? '');
  const line = useMemo(() => (token ? openLine(token) : undefined), [token]);
  useEffect(() => () => line?.close(), [line]);
  return (
    <>
      <header className="top">
        <h1>
          <Wave /> Inspector
        </h1>
        <p>Why does somebody’s badge say what it says? Every number that it is made of, live. Each look at another person is logged.</p>
        <SignIn token={token} setToken={setToken} />
      </header>
      {line && (
        <Provider value={line.client} key={token}>
          <Search choose={setUserId} />
          <main>{userId && <PersonView key={userId} userId={userId} />}</main>
        </Provider>
      )}
    </>
  );
}

function SignIn({ token, setToken }: { token: string; setToken: (token: string) => void }) {
  const [typed, setTyped] = useState('');
  return (
    <details className="sign-in" open={!token}>
      <summary>{token ? 'Signed in. Take another token' : 'A token of the support role is needed'}</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setToken(typed.trim());
        }}
      >
        <input aria-label="Token" type="password" autoComplete="off" value={typed} onChange={(event) => setTyped(event.target.value)} />
        <button type="submit">Sign in</button>
      </form>
    </details>
  );
}

function Search({ choose }: { choose: (userId: string) => void }) {
  const [typed, setTyped] = useState('');
  const search = typed.trim();
  const [{ data, error }] = useQuery({ query: PeopleDocument, variables: { search }, pause: search === '' });
  return (
    <section className="search" aria-label="Find a person">
      <label>
        A number, or how a name begins
        <input type="search" value={typed} onChange={(event) => setTyped(event.target.value)} placeholder="ada" />
      </label>
      {error && (
        <p role="alert" className="problem">
          {asRefused(error).message}
        </p>
      )}
      {search !== '' && data && (
        <ul className="found" aria-label="People found">
          {data.people.map(({ id, displayName }) => (
            <li key={id}>
              <button type="button" onClick={() => choose(id)}>
                {displayName} <small>{id}</small>
              </button>
            </li>
          ))}
          {data.people.length === 0 && <li className="empty">Nobody.</li>}
        </ul>
      )}
    </section>
  );
}

type Inspection = InspectionQuery['inspection'];

function PersonView({ userId }: { userId: string }) {
  const [{ data, error }, again] = useQuery({ query: InspectionDocument, variables: { userId, after: null }, requestPolicy: 'network-only' });
  const [{ data: changed }] = useSubscription({ query: InspectionChangedDocument, variables: { userId } });
  useEffect(() => {
    const ask = () => again({ requestPolicy: 'network-only' });
    if (changed) ask();
    const timer = setInterval(ask, refreshEvery);
    return () => clearInterval(timer);
  }, [changed, again]);
  if (error) {
    return (
      <p role="alert" className="problem">
        {asRefused(error).message}
      </p>
    );
  }
  return data ? <Numbers inspection={data.inspection} /> : <p>Looking…</p>;
}

function Numbers({ inspection }: { inspection: Inspection }) {
  const { person, total, newlyUnread, devices, badges, pageInfo } = inspection;
  const [chosen, setChosen] = useState<string>();
  const sorted = [...badges].sort((a, b) => b.unread.count - a.unread.count || compareIds(a.channelId, b.channelId));
  const shown = sorted.find(({ channelId }) => channelId === chosen) ?? sorted[0];
  return (
    <>
      <h2>
        {person.displayName} <small>{person.id}</small>
      </h2>
      <div className="facts">
        <section aria-labelledby="fact-read">
          <h3 id="fact-read">Has read</h3>
          <p className="number">{total.unread.label}</p>
          <p>unread in {total.unreadChannels} channels, {total.mentions.label} mentions. That is the app’s icon.</p>
        </section>
        <section aria-labelledby="fact-received">
          <h3 id="fact-received">Has received</h3>
          {devices.length === 0 && <p className="empty">No device has confirmed anything.</p>}
          <ul className="list">
            {devices.map(({ id, lastConfirmedAt, channels }) => (
              <li key={id}>
                <b>{id}</b> confirmed at <When at={lastConfirmedAt} />, holds {channels} channels
              </li>
            ))}
          </ul>
        </section>
        <section aria-labelledby="fact-icon">
          <h3 id="fact-icon">Has opened messages</h3>
          <p className="number">{newlyUnread.label}</p>
          <p>
            {newlyUnread.acknowledgedAt ? (
              <>
                people wrote since <When at={newlyUnread.acknowledgedAt} />
              </>
            ) : (
              'people wrote; never opened'
            )}
            {newlyUnread.senders.length > 0 && `: ${newlyUnread.senders.map(({ user }) => user.displayName).join(', ')}`}
          </p>
        </section>
      </div>
      <div className="explained">
        <ul className="channels" aria-label="Badges">
          {sorted.map((badge) => (
            <li key={badge.channelId}>
              <button type="button" className={badge.muted ? 'muted' : ''} aria-current={badge === shown ? 'true' : undefined} onClick={() => setChosen(badge.channelId)}>
                <span className="name">{badge.channelName}</span>
                {badge.muted && <span className="tag">muted</span>}
                <span className={badge.unread.count === 0 ? 'count none' : 'count'}>
                  <span>{badge.unread.label}</span>
                  <span className="sr"> unread</span>
                </span>
              </button>
            </li>
          ))}
          {pageInfo.hasNextPage && <li className="empty">The first hundred channels are shown.</li>}
        </ul>
        {shown && <ExplanationView e={shown} />}
      </div>
    </>
  );
}

const moves = { JOINED: 'joining', MARK_READ: 'reading', MARK_UNREAD: 'marking unread', SENT: 'sending a message' } as const;

function ExplanationView({ e }: { e: ExplanationFragment }) {
  return (
    <section className="explanation" aria-label={`The badge of ${e.channelName}`}>
      <blockquote>{e.summary}</blockquote>
      <p className="sum" aria-label={`${e.highWaterSeq} less ${e.lastReadSeq} is ${e.unreadUpperBound}; less ${e.deletedInGap} deleted and ${e.ownInGap} own is ${e.unread.label}`} role="img">
        <Figure n={e.highWaterSeq} what="newest" /> − <Figure n={e.lastReadSeq} what="read up to" /> = <Figure n={e.unreadUpperBound} what="bound" /> −{' '}
        <Figure n={e.deletedInGap} what="deleted" /> − <Figure n={e.ownInGap} what="own" /> = <Figure n={e.unread.label} what="badge" />
      </p>
      <dl>
        <Entry term="Receipt cursor" value={e.receiptSeq} />
        <Entry term="Joined at" value={e.joinedSeq} />
        <Entry term="Epoch" value={e.readEpoch} />
        <Entry term="Version" value={e.version} />
        <Entry term="Mentions" value={e.mentions.label} />
        <Entry term="Muted" value={e.muted ? 'yes' : 'no'} />
        <div className="wide">
          <dt>Moved last</dt>
          <dd>
            by {moves[e.lastMovedBy]}
            {e.lastMovedByDeviceId && <>, on {e.lastMovedByDeviceId}</>}
            {e.lastMovedAt && (
              <>
                , at <When at={e.lastMovedAt} />
              </>
            )}
          </dd>
        </div>
      </dl>
      <h3>Devices</h3>
      {e.devices.length === 0 && <p className="empty">None has confirmed anything of this channel.</p>}
      <ul className="list">
        {e.devices.map(({ deviceId, lastDeliveredSeq, confirmedAt }) => (
          <li key={deviceId}>
            <b>{deviceId}</b> holds up to {lastDeliveredSeq}
            {confirmedAt && (
              <>
                , confirmed at <When at={confirmedAt} />
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Figure({ n, what }: { n: number | string; what: string }) {
  return (
    <span className="figure">
      <b>{n}</b>
      <small>{what}</small>
    </span>
  );
}

function Entry({ term, value }: { term: string; value: number | string }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** In UTC, as the sentence has it. */
function When({ at }: { at: string }) {
  return <time dateTime={at}>{at.slice(0, 19).replace('T', ' ')} UTC</time>;
}
