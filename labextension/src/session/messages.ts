/**
 * The messages of one session, and how pages and events change them.  Pure: no requests, no clocks.
 *
 * What stayed the same keeps its identity, so that only what changed is drawn again.
 */
import { Message, MessagePage, Part } from '../records';

/** A piece of text that a part grew by. */
export interface Delta {
  readonly message_id: string;
  readonly part_id: string;
  readonly field: string;
  readonly delta: string;
}

export interface Log {
  /** In order of their ids, which ascend with time; without holes. */
  readonly messages: readonly Message[];
  /** What to ask for the messages before these with; `null`: there are none. */
  readonly next: string | null;
  /** A page was read. */
  readonly loaded: boolean;
  /** Messages that the stream told whole: it goes on from there, and is newer than any page. */
  readonly told: ReadonlySet<string>;
  /** Messages with text that may lack its beginning. */
  readonly unsure: ReadonlySet<string>;
  /** Text of parts that are not known yet. */
  readonly early: readonly Delta[];
}

export const EMPTY_LOG: Log = {
  messages: [],
  next: null,
  loaded: false,
  told: new Set(),
  unsure: new Set(),
  early: []
};

/** The newest page was read, for the first time or again. */
export function applyNewest(log: Log, page: MessagePage): Log {
  const fetched = inOrder(page.messages);
  const first = fetched.length ? fetched[0].info.id : '';
  const known = new Map(log.messages.map(message => [message.info.id, message]));
  // Messages from before the page are only kept when nothing is missing in between.
  const joins = log.loaded && page.next !== null && fetched.some(({ info }) => known.has(info.id));
  const messages = joins ? log.messages.filter(({ info }) => info.id < first) : [];
  const next = joins && messages.length ? log.next : page.next;
  const unsure = new Set(log.unsure);
  for (const message of fetched) {
    const { id } = message.info;
    const ours = known.get(id);
    known.delete(id);
    if (ours && log.told.has(id)) {
      messages.push(ours);
      continue;
    }
    messages.push(withEarly(ours ? combined(ours, message) : message, log.early));
    if (message.info.role === 'user' || message.info.time?.completed) {
      unsure.delete(id);
    }
  }
  // What the stream told since is younger than the page; all else that the page does not have is gone.
  for (const [id, message] of known) {
    if (log.told.has(id) && id >= first) {
      messages.push(message);
    }
  }
  const there = new Set(messages.map(({ info }) => info.id));
  return {
    ...log,
    messages: sameOr(log.messages, inOrder(messages)),
    next,
    loaded: true,
    unsure,
    early: log.early.filter(({ message_id }) => !there.has(message_id))
  };
}

/** The page before the known messages was read. */
export function applyEarlier(log: Log, page: MessagePage): Log {
  const first = log.messages[0]?.info.id;
  const older = inOrder(page.messages).filter(({ info }) => first === undefined || info.id < first);
  return { ...log, messages: older.length ? [...older, ...log.messages] : log.messages, next: page.next };
}

/** The stream told a message, whole as it is so far. */
export function applyMessage(log: Log, message: Message): Log {
  const id = message?.info?.id;
  if (typeof id !== 'string' || !Array.isArray(message.parts)) {
    return log;
  }
  const at = placeOf(log.messages, id);
  const known = log.messages[at]?.info.id === id ? log.messages[at] : undefined;
  if (!known && at === 0 && log.next !== null) {
    // Older than what is shown: it would stand there without its neighbours.
    return log;
  }
  const next = known ? shareMessage(known, message) : message;
  return {
    ...log,
    messages: next === known ? log.messages : replaced(log.messages, at, known ? 1 : 0, next),
    told: log.told.has(id) ? log.told : new Set(log.told).add(id),
    unsure: without(log.unsure, id),
    early: log.early.some(({ message_id }) => message_id === id)
      ? log.early.filter(({ message_id }) => message_id !== id)
      : log.early
  };
}

/** The stream told that a part grew. */
export function applyDelta(log: Log, delta: Delta): Log {
  const { message_id: id } = delta;
  const at = placeOf(log.messages, id);
  const message = log.messages[at];
  const part =
    message?.info.id === id ? message.parts.findIndex(({ id: known }) => known === delta.part_id) : -1;
  if (part < 0) {
    return { ...log, early: joined(log.early, delta), unsure: new Set(log.unsure).add(id) };
  }
  const told = log.told.has(id);
  if (!told && isEnded(message.parts[part])) {
    // Said before the page was read, which has it all.
    return log;
  }
  const grown = grow(message.parts[part], delta);
  if (grown === message.parts[part]) {
    return log;
  }
  const parts = replaced(message.parts, part, 1, grown);
  return {
    ...log,
    messages: replaced(log.messages, at, 1, { ...message, parts: parts as Part[] }),
    unsure: told || log.unsure.has(id) ? log.unsure : new Set(log.unsure).add(id)
  };
}

/** Keep the newest `count` messages; the others can be read again. */
export function trim(log: Log, count: number): Log {
  if (log.messages.length <= count) {
    return log;
  }
  const messages = log.messages.slice(-count);
  return { ...log, messages, next: messages[0].info.id };
}

/** The stream begins anew: what it tells from now on does not join what it told before. */
export function restart(log: Log): Log {
  return { ...log, told: new Set(), unsure: new Set(), early: [] };
}

/** Whether a part will not grow any more. */
export function isEnded(part: Part): boolean {
  const end = (part.time as { end?: unknown } | undefined)?.end;
  const status = part.state?.status;
  return (end !== undefined && end !== null) || status === 'completed' || status === 'error';
}

/** `fresh`, with everything that equals `known` taken from there; `known` itself when all does. */
export function shareMessage(known: Message, fresh: Message): Message {
  const info = share(known.info, fresh.info);
  const byId = new Map(known.parts.map(part => [part.id, part]));
  const shared = fresh.parts.map(part => {
    const ours = byId.get(part.id);
    return ours ? share(ours, part) : part;
  });
  const parts = sameOr(known.parts, shared) as Part[];
  return info === known.info && parts === known.parts ? known : { info, parts };
}

// --- parts of it ---------------------------------------------------------------------------------

/** A part's own facts do not grow. */
const FIXED = new Set(['id', 'messageID', 'sessionID', 'type', 'tool', 'callID']);

function grow(part: Part, { field, delta }: Delta): Part {
  const before = part[field];
  const isText = before === undefined || typeof before === 'string';
  return isText && !FIXED.has(field) && delta ? { ...part, [field]: (before ?? '') + delta } : part;
}

/** A page's message, but with the text that was streamed and is not written down yet. */
function combined(known: Message, fetched: Message): Message {
  const byId = new Map(known.parts.map(part => [part.id, part]));
  const parts = fetched.parts.map(part => {
    const ours = byId.get(part.id)?.text;
    const behind = !isEnded(part) && ours !== undefined && ours.length > (part.text ?? '').length;
    return behind && ours.startsWith(part.text ?? '') ? { ...part, text: ours } : part;
  });
  return shareMessage(known, { ...fetched, parts });
}

function withEarly(message: Message, early: readonly Delta[]): Message {
  const deltas = early.filter(({ message_id }) => message_id === message.info.id);
  if (!deltas.length) {
    return message;
  }
  const parts = message.parts.map(part =>
    isEnded(part)
      ? part
      : deltas.filter(({ part_id }) => part_id === part.id).reduce((grown, delta) => grow(grown, delta), part)
  );
  return { ...message, parts };
}

function joined(deltas: readonly Delta[], delta: Delta): readonly Delta[] {
  const last = deltas[deltas.length - 1];
  return last && isSamePart(last, delta)
    ? replaced(deltas, deltas.length - 1, 1, { ...last, delta: last.delta + delta.delta })
    : [...deltas, delta];
}

/** Whether two deltas that follow each other are one. */
export function isSamePart(a: Delta, b: Delta): boolean {
  return a.message_id === b.message_id && a.part_id === b.part_id && a.field === b.field;
}

/** What a page holds that is a message, in the order of ids, each once. */
function inOrder(messages: readonly Message[]): Message[] {
  const byId = new Map<string, Message>();
  for (const message of messages) {
    if (typeof message?.info?.id === 'string' && Array.isArray(message.parts)) {
      byId.set(message.info.id, message);
    }
  }
  return [...byId.values()].sort((a, b) => (a.info.id < b.info.id ? -1 : 1));
}

/** Where a message is, or would be. */
function placeOf(messages: readonly Message[], id: string): number {
  let low = 0;
  let high = messages.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (messages[middle].info.id < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function replaced<T>(list: readonly T[], at: number, count: number, item: T): readonly T[] {
  const copy = list.slice();
  copy.splice(at, count, item);
  return copy;
}

function without<T>(set: ReadonlySet<T>, item: T): ReadonlySet<T> {
  if (!set.has(item)) {
    return set;
  }
  const copy = new Set(set);
  copy.delete(item);
  return copy;
}

function sameOr<T>(known: readonly T[], fresh: readonly T[]): readonly T[] {
  return known.length === fresh.length && known.every((item, i) => item === fresh[i]) ? known : fresh;
}

/** `fresh`, with every part of it that equals `known`'s taken from there. */
function share<T>(known: T, fresh: T): T {
  if (Object.is(known, fresh)) {
    return known;
  }
  if (Array.isArray(known) && Array.isArray(fresh)) {
    const items = fresh.map((item, i) => share(known[i], item));
    return sameOr(known, items) as unknown as T;
  }
  if (isRecord(known) && isRecord(fresh)) {
    const keys = Object.keys(fresh);
    let same = keys.length === Object.keys(known).length;
    const copy: Record<string, unknown> = {};
    for (const key of keys) {
      copy[key] = share(known[key], fresh[key]);
      same = same && Object.is(copy[key], known[key]);
    }
    return (same ? known : copy) as T;
  }
  return fresh;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
