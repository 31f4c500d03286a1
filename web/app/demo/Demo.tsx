import { useEffect, useRef, useState } from 'react';
import { Wave } from '../Wave';
import { DeviceFrame } from './DeviceFrame';
import { install, people, type Installation, type Kind } from './installation';
import { lunch, redDot, type Cast, type Step } from './stories';

export function Demo() {
  const [installations, setInstallations] = useState<Installation[]>(() =>
    people.length < 2 ? [] : [install('1', 'phone'), install('1', 'laptop'), install('2', 'phone')],
  );
  const all = useRef(installations);
  all.current = installations;
  useEffect(() => {
    const leave = () => all.current.forEach((installation) => installation.turnOff());
    addEventListener('pagehide', leave);
    return () => removeEventListener('pagehide', leave);
  }, []);

  const add = (personId: string, kind: Kind) => {
    const added = install(personId, kind);
    all.current = [...all.current, added];
    setInstallations(all.current);
    return added;
  };
  const remove = (gone: Installation) => {
    void gone.putAway();
    setInstallations(all.current.filter((installation) => installation !== gone));
  };
  /** The devices of a story: those that are there, and others where somebody has put them away. */
  const cast = (): Cast => {
    const find = (personId: string, kind: Kind) => all.current.find((i) => i.person.id === personId && i.kind === kind) ?? add(personId, kind);
    return { phone: find('1', 'phone'), laptop: find('1', 'laptop'), other: find('2', 'phone') };
  };

  if (people.length < 2) return <main className="lone">The demo has nobody in it: start with its data, by “make run”.</main>;
  return (
    <>
      <header className="top">
        <h1>
          <Wave /> Tidemark
        </h1>
        <p>
          Each frame is a device with a connection of its own. Write, read, mute, delete, switch one off and on: two devices of one
          person always come to show the same. Nothing is marked read here unless you say so, so that you can watch every step.
        </p>
        <nav aria-label="Other pages">
          <a href="/inspect">Inspector</a> <a href="/">Playground</a>
        </nav>
      </header>
      <Stories cast={cast} />
      <main aria-label="Devices" className="devices">
        {installations.map((installation) => (
          <DeviceFrame key={installation.key} installation={installation} remove={() => remove(installation)} />
        ))}
      </main>
      <AddDevice add={add} />
    </>
  );
}

function Stories({ cast }: { cast: () => Cast }) {
  const [steps, setSteps] = useState<Step[]>([]);
  const [playing, setPlaying] = useState<string>();
  const [ended, setEnded] = useState<string>();
  const play = async (title: string, story: (tell: (step: Step) => void, cast: Cast) => Promise<void>) => {
    setPlaying(title);
    setEnded(undefined);
    setSteps([]);
    try {
      await story((step) => setSteps((before) => [...before, step]), cast());
      setEnded('It does not happen here.');
    } catch (error) {
      setEnded(`It went wrong: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      setPlaying(undefined);
    }
  };
  return (
    <section className="stories" aria-labelledby="stories">
      <h2 id="stories">Two things that go wrong elsewhere</h2>
      <div className="plays">
        <button type="button" disabled={playing !== undefined} onClick={() => void play('dot', redDot)}>
          Read on the phone: the laptop keeps its red dot
        </button>
        <button type="button" disabled={playing !== undefined} onClick={() => void play('lunch', lunch)}>
          The laptop slept through lunch
        </button>
      </div>
      <ol className="steps" aria-live="polite">
        {steps.map((step, i) => (
          <li key={i} className={step.outcome ?? 'done'}>
            {step.text}
            {step.took !== undefined && <small> {step.took < 1 ? 'at once' : `after ${Math.round(step.took)} ms`}</small>}
            {step.outcome === 'wrong' && <strong> (that is wrong)</strong>}
          </li>
        ))}
      </ol>
      <p role="status" className="ending">
        {ended}
      </p>
    </section>
  );
}

function AddDevice({ add }: { add: (personId: string, kind: Kind) => void }) {
  const [personId, setPersonId] = useState('3');
  const [kind, setKind] = useState<Kind>('phone');
  return (
    <form
      className="add"
      aria-label="Add a device"
      onSubmit={(event) => {
        event.preventDefault();
        add(personId, kind);
      }}
    >
      <label>
        Whose{' '}
        <select value={personId} onChange={(event) => setPersonId(event.target.value)}>
          {people.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        What{' '}
        <select value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          <option value="phone">a phone</option>
          <option value="laptop">a laptop</option>
        </select>
      </label>
      <button type="submit">Add a device</button>
    </form>
  );
}
