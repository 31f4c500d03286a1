import { Device } from '@tidemark/kit';
import { ForgetDeviceDocument } from '../generated';
import { openLine, type Line } from '../line';
import { settings, type Person } from '../settings';

export type Kind = 'phone' | 'laptop';

/** A device in the demo: an installation of the app, and its connection while it is on. */
export class Installation {
  readonly device: Device;
  readonly name: string;
  private line: Line | undefined;

  constructor(
    readonly key: string,
    readonly person: Person,
    readonly kind: Kind,
  ) {
    this.device = new Device(`demo-${kind}-${crypto.randomUUID().slice(0, 8)}`);
    this.name = `${person.name}’s ${kind}`;
    this.turnOn();
  }

  get on(): boolean {
    return this.line !== undefined;
  }

  turnOn(): void {
    if (this.line) return;
    this.line = openLine(this.person.token);
    this.device.attach(this.line);
  }

  turnOff(): void {
    const { line } = this;
    this.line = undefined;
    this.device.detach();
    line?.close();
  }

  /** The device is put away for good, and what the server knows of it goes too, where it can be told. */
  async putAway(): Promise<void> {
    const { line } = this;
    this.device.detach();
    if (line) await line.ask(ForgetDeviceDocument, { deviceId: this.device.deviceId }).catch(() => undefined);
    this.turnOff();
  }

  /** The connection, for what the demo asks beside the kit. */
  get connection(): Line {
    if (!this.line) throw new Error(`${this.name} is off`);
    return this.line;
  }
}

export const people: Person[] = settings.people ?? [];

let made = 0;

export function install(personId: string, kind: Kind): Installation {
  const person = people.find(({ id }) => id === personId);
  if (!person) throw new Error(`nobody is number ${personId}`);
  return new Installation(`device-${++made}`, person, kind);
}
