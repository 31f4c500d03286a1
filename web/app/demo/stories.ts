import { ExplainBadgeDocument } from '../generated';
import type { Installation } from './installation';

/** A step of a story: what was done, or what was seen, after how many milliseconds. */
export interface Step {
  text: string;
  outcome?: 'right' | 'wrong';
  took?: number;
}

export interface Cast {
  phone: Installation;
  laptop: Installation;
  other: Installation;
}

type Tell = (step: Step) => void;

const channelId = '101';
const patience = 10_000;

const badgeOf = ({ device }: Installation) => device.show().badges.find(({ channel }) => channel.id === channelId);
const shows = (where: Installation) => badgeOf(where)?.unread.label ?? 'nothing';

/** Waits until something holds, and tells how long it took. Where it does not come to hold, the story ends badly. */
async function see(tell: Tell, text: () => string, where: Installation, holds: () => boolean): Promise<void> {
  const started = performance.now();
  const held = await new Promise<boolean>((resolve) => {
    const end = (outcome: boolean) => {
      clearTimeout(timer);
      unsubscribe();
      resolve(outcome);
    };
    const timer = setTimeout(() => end(false), patience);
    const unsubscribe = where.device.subscribe(() => holds() && end(true));
    if (holds()) end(true);
  });
  tell({ text: text(), outcome: held ? 'right' : 'wrong', took: performance.now() - started });
  if (!held) throw new Error('the story ended badly');
}

const live = (tell: Tell, where: Installation) =>
  see(tell, () => `${where.name} is connected`, where, () => where.device.show().status === 'live' && badgeOf(where) !== undefined);

/** Has the server explain the badge to whoever it belongs to. */
async function explain(tell: Tell, where: Installation, unread: number): Promise<void> {
  const { explainBadge: e } = await where.connection.ask(ExplainBadgeDocument, { channelId });
  const adds = e.unread.count + e.deletedInGap + e.ownInGap === e.unreadUpperBound && e.unread.count === unread;
  tell({ text: `The server explains: “${e.summary}”`, outcome: adds ? 'right' : 'wrong' });
}

async function begin(tell: Tell, { phone, laptop, other }: Cast): Promise<void> {
  for (const installation of [phone, laptop, other]) {
    installation.turnOn();
    await live(tell, installation);
  }
  await phone.device.open(channelId);
  await phone.device.markRead(channelId, badgeOf(phone)?.highWaterSeq ?? 0);
  await see(tell, () => `${phone.person.name} has read everything in general, and both devices show ${shows(laptop)}`, laptop,
    () => badgeOf(laptop)?.unread.count === 0);
}

/** "I read it on the phone, and the laptop keeps its red dot." */
export async function redDot(tell: Tell, cast: Cast): Promise<void> {
  const { phone, laptop, other } = cast;
  await begin(tell, cast);
  for (const body of ['Anyone for lunch?', 'The new place is open.', 'Twelve, at the door?']) await other.device.send(channelId, body);
  tell({ text: `${other.person.name} writes three messages` });
  for (const where of [phone, laptop]) await see(tell, () => `${where.name} shows ${shows(where)}`, where, () => badgeOf(where)?.unread.count === 3);
  await phone.device.markRead(channelId, badgeOf(phone)?.highWaterSeq ?? 0);
  tell({ text: `${phone.person.name} reads them on the phone` });
  await see(tell, () => `${laptop.name} shows ${shows(laptop)}: its red dot is gone`, laptop, () => badgeOf(laptop)?.unread.count === 0);
  await explain(tell, laptop, 0);
}

/** "The laptop slept through lunch." */
export async function lunch(tell: Tell, cast: Cast): Promise<void> {
  const { phone, laptop, other } = cast;
  await begin(tell, cast);
  laptop.turnOff();
  tell({ text: `${laptop.name} is shut, and shows ${shows(laptop)}` });
  const sent: number[] = [];
  for (const body of ['Soup or salad?', 'I take the soup.', 'It is very good.', 'Wrong channel, sorry.', 'Back at one.']) {
    sent.push((await other.device.send(channelId, body)).seq);
  }
  const [, , third = 0, fourth = 0] = sent;
  await other.device.delete(channelId, fourth);
  tell({ text: `${other.person.name} writes five messages, and deletes the fourth` });
  await see(tell, () => `${phone.name} shows ${shows(phone)}`, phone, () => badgeOf(phone)?.unread.count === 4);
  await phone.device.markRead(channelId, third);
  tell({ text: `${phone.person.name} reads the first three on the phone` });
  await see(tell, () => `${phone.name} shows ${shows(phone)}`, phone, () => badgeOf(phone)?.unread.count === 1);
  tell({ text: `${laptop.name} knows of none of it, and shows ${shows(laptop)}` });
  const before = laptop.device.show().catchUp;
  laptop.turnOn();
  tell({ text: `${laptop.name} is opened` });
  await see(tell, () => {
    const caughtUp = laptop.device.show().catchUp?.channels.find((c) => c.channelId === channelId);
    return caughtUp?.kind === 'diff' ? `It is sent a diff of ${caughtUp.messages} messages` : 'It starts afresh';
  }, laptop, () => laptop.device.show().status === 'live' && laptop.device.show().catchUp !== before);
  await see(tell, () => `${laptop.name} shows ${shows(laptop)}, as the phone does: ${shows(phone)}`, laptop,
    () => badgeOf(laptop)?.unread.count === 1 && badgeOf(laptop)?.lastReadSeq === third);
  await explain(tell, laptop, 1);
}
