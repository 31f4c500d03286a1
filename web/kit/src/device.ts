import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { Badges, type Badge } from './badges';
import { Confirmations } from './confirmations';
import * as api from './generated';
import { ChannelLog, type ChannelEvent, type Message } from './log';
import { Reads } from './reads';
import type { CatchUp, CaughtUp, ChannelInfo, Icon, Replayed, Shown, Status } from './shown';
import { Refused, passes, type Transport } from './transport';

const retryAfter = 1000;

/**
 * One installation of an app, of one person. It keeps its numbers and messages right whatever happens to its network: it
 * orders by version, catches up after each reconnect, confirms what it holds in batches, and keeps reads that could not
 * be told. What it keeps outlives its connections; an app stores it together with the device's id.
 */
export class Device {
  private readonly badges = new Badges();
  private readonly logs = new Map<string, ChannelLog>();
  private readonly confirmations = new Confirmations();
  private readonly reads = new Reads();
  private readonly channels = new Map<string, ChannelInfo>();
  private readonly confirmed = new Map<string, number>();
  private readonly listeners = new Set<() => void>();

  private transport: Transport | undefined;
  private ends: (() => void)[] = []; // of what lasts as long as the transport
  private status: Status = 'off';
  private icon: Icon | undefined;
  private viewing: (() => void) | undefined;
  private openId: string | undefined;
  private endEvents: (() => void) | undefined;
  private readonly syncing = new Map<string, Promise<CaughtUp | undefined>>();
  private readonly early = new Map<string, ChannelEvent[]>(); // events that came while their channel was being synced
  private readonly asked = new Set<string>(); // channels whose names were asked for
  private catchingUp = 0;
  private catchUp: CatchUp | undefined;
  private replayed: Replayed[] = [];
  private shown: Shown | undefined;

  constructor(readonly deviceId: string) {}

  /** Has a listener called whenever something is shown otherwise. Returns what ends that. */
  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** What is to be shown now. */
  show = (): Shown => {
    const open = this.openId === undefined ? undefined : { channelId: this.openId, messages: this.logs.get(this.openId)?.messages() ?? [] };
    return (this.shown ??= {
      status: this.status,
      badges: this.badges.list(),
      total: this.badges.total,
      icon: this.icon,
      channels: new Map(this.channels),
      open,
      held: new Map([...this.logs].flatMap(([id, { held }]) => (held ? [[id, held] as const] : []))),
      confirmed: new Map(this.confirmed),
      waitingReads: this.reads.size,
      catchUp: this.catchUp,
      replayed: this.replayed,
    });
  };

  /** Goes online by a connection. */
  attach(transport: Transport): void {
    this.detach();
    this.transport = transport;
    this.status = 'connecting';
    this.ends = [
      transport.watch({ connected: () => void this.connected(), lost: () => this.lost() }),
      this.keepFollowing(api.BadgeChangedDocument, {}, ({ badgeChanged }) => this.takeBadges(badgeChanged)),
      this.keepFollowing(api.NewlyUnreadChangedDocument, { viewing: false }, ({ newlyUnreadChanged }) => {
        this.icon = newlyUnreadChanged;
        this.changed();
      }),
    ];
    this.changed();
  }

  /** Goes offline. All that is held stays. */
  detach(): void {
    this.viewing?.();
    this.viewing = undefined;
    this.endEvents?.();
    this.endEvents = undefined;
    for (const end of this.ends) end();
    this.ends = [];
    this.confirmations.stop();
    this.transport = undefined;
    this.syncing.clear();
    this.early.clear();
    this.status = 'off';
    this.changed();
  }

  /** Shows a channel, and follows it. It marks nothing read. */
  async open(channelId: string): Promise<void> {
    this.close();
    this.openId = channelId;
    this.changed();
    if (!this.transport) return;
    await this.sync(channelId);
    this.followOpen();
  }

  close(): void {
    this.endEvents?.();
    this.endEvents = undefined;
    this.openId = undefined;
    this.changed();
  }

  /** The messages screen is open: who writes meanwhile is seen, and does not count. */
  openMessages(): void {
    if (this.transport) this.viewing ??= this.keepFollowing(api.NewlyUnreadChangedDocument, { viewing: true }, () => {});
  }

  closeMessages(): void {
    this.viewing?.();
    this.viewing = undefined;
  }

  /** The person has read up to a message. Offline, that waits. */
  async markRead(channelId: string, upToSeq: number): Promise<void> {
    const badge = this.badges.get(channelId);
    if (!badge) return;
    this.reads.note({ channelId, upToSeq, readEpoch: badge.readEpoch });
    this.changed();
    if (this.transport) await this.tellReads();
  }

  /** A message and all after it become unread again. */
  async markUnread(channelId: string, fromSeq: number): Promise<void> {
    this.reads.forget(channelId); // what was read before that is void
    const { markUnread } = await this.ask(api.MarkUnreadDocument, {
      channelId,
      fromSeq,
      readEpoch: this.badges.get(channelId)?.readEpoch ?? null,
    });
    this.merge(markUnread.badge);
  }

  async setMuted(channelId: string, muted: boolean): Promise<void> {
    this.merge((await this.ask(api.SetMutedDocument, { channelId, muted })).setMuted);
  }

  async send(channelId: string, body: string, mentions: string[] = []): Promise<Message> {
    const clientMessageId = crypto.randomUUID(); // so that a client that sends it again sends it once
    const { sendMessage } = await this.ask(api.SendMessageDocument, { channelId, body, clientMessageId, mentions });
    this.merge(sendMessage.badge);
    return sendMessage.message;
  }

  async delete(channelId: string, seq: number): Promise<void> {
    await this.ask(api.DeleteMessageDocument, { channelId, seq });
  }

  private ask: Transport['ask'] = (document, variables) => {
    if (!this.transport) return Promise.reject(new Error('offline'));
    return this.transport.ask(document, variables);
  };

  /** Follows a stream, and asks for it again where it ends, for as long as the transport is there. */
  private keepFollowing<Data, Variables extends Record<string, unknown>>(
    document: TypedDocumentNode<Data, Variables>,
    variables: Variables,
    next: (data: Data) => void,
  ): () => void {
    const { transport } = this;
    if (!transport) return () => {};
    let timer: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    let end = () => {};
    const begin = () => {
      end = transport.follow(document, variables, {
        next: (data) => {
          if (!ended) next(data);
        },
        error: () => {
          if (!ended) timer = setTimeout(begin, retryAfter);
        },
      });
    };
    begin();
    return () => {
      ended = true;
      clearTimeout(timer);
      end();
    };
  }

  /** A connection was made, the first or another. Badges come by themselves; what was missed has to be asked for. */
  private async connected(): Promise<void> {
    const { transport } = this;
    if (!transport) return;
    this.confirmations.start(async (cursors, storeEpoch) => {
      const { confirmDelivery } = await transport.ask(api.ConfirmDeliveryDocument, { deviceId: this.deviceId, cursors, storeEpoch });
      for (const { channelId, lastDeliveredSeq } of confirmDelivery) this.confirmed.set(channelId, lastDeliveredSeq);
      this.changed();
    });
    const number = ++this.catchingUp;
    const current = () => this.transport === transport && this.catchingUp === number;
    for (;;) {
      try {
        await this.tellReads();
        const caughtUp = await this.catchUpWith(transport, current);
        if (!caughtUp) return;
        this.catchUp = caughtUp;
        this.status = 'live';
        this.followOpen();
        for (const { channel } of this.badges.list()) this.fetch(channel.id); // what came meanwhile
        this.changed();
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, retryAfter));
        if (!current()) return;
      }
    }
  }

  private lost(): void {
    this.catchingUp++;
    this.status = this.transport ? 'connecting' : 'off';
    this.endEvents?.(); // it is followed from what is held then
    this.endEvents = undefined;
    this.confirmations.stop();
    this.changed();
  }

  private async catchUpWith(transport: Transport, current: () => boolean): Promise<CatchUp | undefined> {
    const started = performance.now();
    const result: CatchUp = { channels: [], unchanged: 0, took: 0 };
    const storeEpoch = [...this.logs.values()].find((log) => log.held)?.held?.storeEpoch;
    const held = [...this.logs].flatMap(([channelId, log]) =>
      log.held && log.held.storeEpoch === storeEpoch ? [{ channelId, seq: log.held.seq, version: log.held.version }] : [],
    );
    for (let after: string | null = null, more = true; more; ) {
      const variables: api.SyncDeviceQueryVariables = {
        deviceId: this.deviceId,
        held: held.slice(0, 1000), // the API's; of the rest the server's own record tells
        storeEpoch: storeEpoch ?? null,
        after,
      };
      const { syncDevice }: api.SyncDeviceQuery = await transport.ask(api.SyncDeviceDocument, variables);
      for (const { channelId, action } of syncDevice.channels) {
        if (!current()) return undefined;
        if (action === 'NONE') {
          result.unchanged++;
          continue;
        }
        const caughtUp = await this.sync(channelId);
        if (caughtUp) result.channels.push(caughtUp);
      }
      after = syncDevice.pageInfo.endCursor;
      more = syncDevice.pageInfo.hasNextPage;
    }
    result.took = performance.now() - started;
    return current() ? result : undefined;
  }

  /** Has a channel's log brought up to date. Several who want that at a time share one. */
  private sync(channelId: string): Promise<CaughtUp | undefined> {
    let running = this.syncing.get(channelId);
    if (!running) {
      const before = this.logs.get(channelId)?.held?.seq ?? -1;
      running = this.syncOnce(channelId).finally(() => {
        if (this.syncing.get(channelId) !== running) return;
        this.syncing.delete(channelId);
        const early = this.early.get(channelId) ?? [];
        this.early.delete(channelId);
        for (const event of early) this.takeEvent(channelId, event);
        // A message may have come since the answer was made. One that brought nothing is not asked for again at once.
        if ((this.logs.get(channelId)?.held?.seq ?? -1) > before) this.fetch(channelId);
      });
      this.syncing.set(channelId, running);
    }
    return running;
  }

  private async syncOnce(channelId: string): Promise<CaughtUp | undefined> {
    const { transport } = this;
    const log = this.logs.get(channelId) ?? new ChannelLog();
    let messages = 0;
    let deleted = 0;
    for (;;) {
      if (!transport) return undefined;
      const { held } = log;
      let answer: api.SyncChannelQuery['syncChannel'];
      try {
        answer = (
          await transport.ask(api.SyncChannelDocument, {
            channelId,
            deviceId: this.deviceId,
            after: held?.seq ?? null,
            sinceVersion: held?.version ?? null,
            storeEpoch: held?.storeEpoch ?? null,
          })
        ).syncChannel;
      } catch (error) {
        if (error instanceof Refused && error.code === 'NOT_FOUND') return undefined; // they left meanwhile
        throw error;
      }
      if (this.transport !== transport) return undefined;
      log.apply(answer);
      this.logs.set(channelId, log);
      if (log.held) this.confirmations.note(channelId, log.held);
      this.merge(answer.badge);
      messages += answer.messages.length;
      if (answer.__typename === 'ChannelResync') return { channelId, kind: 'resync', reason: answer.reason, messages };
      deleted += answer.deletedSeqs.length;
      if (!answer.hasMore) return { channelId, kind: 'diff', messages, deleted };
    }
  }

  /** Follows the open channel, from what is held now. */
  private followOpen(): void {
    this.endEvents?.();
    this.endEvents = undefined;
    const { transport, openId: channelId } = this;
    const held = channelId === undefined ? undefined : this.logs.get(channelId)?.held;
    if (!transport || channelId === undefined || !held) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = transport.follow(
      api.ChannelEventsDocument,
      { channelId, after: held.seq, sinceVersion: held.version, storeEpoch: held.storeEpoch },
      {
        next: ({ channelEvents }) => this.takeEvent(channelId, channelEvents),
        error: () => {
          timer = setTimeout(() => this.followOpen(), retryAfter);
        },
      },
    );
    this.endEvents = () => {
      clearTimeout(timer);
      end();
    };
  }

  private takeEvent(channelId: string, event: ChannelEvent): void {
    if (this.syncing.has(channelId)) {
      this.early.set(channelId, [...(this.early.get(channelId) ?? []), event]);
      return;
    }
    const log = this.logs.get(channelId);
    switch (log?.take(event)) {
      case 'news':
        if (log.held) this.confirmations.note(channelId, log.held);
        this.changed();
        break;
      case 'gap':
      case undefined:
        this.trySync(channelId);
        break;
      case 'known':
    }
  }

  private takeBadges(change: api.BadgeChangedSubscription['badgeChanged']): void {
    for (const channelId of this.badges.take(change)) {
      if (this.badges.get(channelId)) continue;
      this.logs.delete(channelId);
      this.channels.delete(channelId);
      this.asked.delete(channelId);
      this.confirmed.delete(channelId);
      this.confirmations.forget(channelId);
      this.reads.forget(channelId);
      if (this.openId === channelId) this.close();
    }
    for (const { channel } of change.badges) {
      void this.name(channel.id);
      this.fetch(channel.id);
    }
    this.changed();
  }

  /** Fetches what a badge says that there is. The open channel has a stream of its own, which brings it. */
  private fetch(channelId: string): void {
    const badge = this.badges.get(channelId);
    if (this.status !== 'live' || !badge || (channelId === this.openId && this.endEvents)) return;
    if (badge.highWaterSeq > (this.logs.get(channelId)?.held?.seq ?? -1)) this.trySync(channelId);
  }

  /** Syncs where nobody waits for it: what cannot be now is found again at the next message, or the next reconnect. */
  private trySync(channelId: string): void {
    this.sync(channelId).catch(() => undefined);
  }

  private async name(channelId: string): Promise<void> {
    if (this.asked.has(channelId)) return;
    this.asked.add(channelId);
    try {
      const { channel } = await this.ask(api.ChannelDocument, { id: channelId });
      if (channel) this.channels.set(channelId, channel);
      this.changed();
    } catch {
      this.asked.delete(channelId); // at the next event
    }
  }

  private async tellReads(): Promise<void> {
    while (this.reads.size > 0) {
      const batch = this.reads.batch();
      let markManyRead: api.MarkManyReadMutation['markManyRead'];
      try {
        ({ markManyRead } = await this.ask(api.MarkManyReadDocument, { cursors: batch, deviceId: this.deviceId }));
      } catch (error) {
        if (!passes(error)) this.reads.settle(batch); // it would be refused again
        throw error;
      }
      this.reads.settle(batch);
      this.replayed = markManyRead.map(({ channelId, outcome }, i) => ({ channelId, outcome, upToSeq: batch[i]?.upToSeq ?? 0 }));
      for (const { badge } of markManyRead) this.merge(badge);
    }
  }

  private merge(badge: Badge | null | undefined): void {
    if (badge) this.badges.merge(badge);
    this.changed();
  }

  private changed(): void {
    this.shown = undefined;
    for (const listener of this.listeners) listener();
  }
}
