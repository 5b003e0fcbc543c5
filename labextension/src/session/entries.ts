/**
 * The conversation as a flat list of what is drawn: prompts, texts, tool calls, and what stands between turns.  Pure.
 *
 * An entry that says the same as before is the same object, so that views compare by identity.
 */
import { Message, MessageInfo, Part } from '../records';
import { isEnded } from './messages';
import { Queue, promptText } from './prompts';
import { wasStopped } from './words';

interface Base {
  readonly key: string;
}

export interface PromptEntry extends Base {
  readonly kind: 'prompt';
  readonly message: Message;
  readonly queued: boolean;
}

export interface TextEntry extends Base {
  readonly kind: 'text' | 'reasoning' | 'summary';
  readonly part: Part;
  /** It still grows. */
  readonly live: boolean;
}

export interface ToolEntry extends Base {
  readonly kind: 'tool';
  readonly part: Part;
}

/** Several calls in a row that only read files. */
export interface ReadsEntry extends Base {
  readonly kind: 'reads';
  readonly parts: readonly Part[];
}

export interface FileEntry extends Base {
  readonly kind: 'file';
  readonly part: Part;
}

/** Something that happened between the lines. */
export interface MarkEntry extends Base {
  readonly kind: 'mark';
  readonly mark: 'compacted' | 'stopped' | 'retried';
  readonly part: Part | null;
}

export interface ErrorEntry extends Base {
  readonly kind: 'error';
  readonly info: MessageInfo;
  /** Nothing came after it. */
  readonly last: boolean;
}

/** What a turn took, when it is over. */
export interface TurnEntry extends Base {
  readonly kind: 'turn';
  readonly cost: number;
  readonly tokens: number;
  readonly milliseconds: number;
  readonly model: string | null;
}

export type Entry =
  PromptEntry | TextEntry | ToolEntry | ReadsEntry | FileEntry | MarkEntry | ErrorEntry | TurnEntry;

/** Calls of these tools in a row are one line. */
const READS = new Set(['read', 'list']);

export interface Circumstances {
  readonly queued: Queue;
  /** A turn runs: its last message is not over. */
  readonly isBusy: boolean;
}

/** The entries of messages; those of `before` that say the same are kept. */
export function entriesOf(
  messages: readonly Message[],
  circumstances: Circumstances,
  before: readonly Entry[] = []
): readonly Entry[] {
  const entries = new Builder(messages, circumstances).build();
  const known = new Map(before.map(entry => [entry.key, entry]));
  const kept = entries.map(entry => {
    const earlier = known.get(entry.key);
    return earlier && isSame(earlier, entry) ? earlier : entry;
  });
  return kept.length === before.length && kept.every((entry, i) => entry === before[i]) ? before : kept;
}

class Builder {
  constructor(
    private _messages: readonly Message[],
    private _circumstances: Circumstances
  ) {}

  build(): Entry[] {
    const { isBusy, queued } = this._circumstances;
    const last = this._messages.length - 1;
    this._messages.forEach((message, i) => {
      const { info } = message;
      if (info.role === 'user') {
        this._endTurn();
        this._prompt(message, queued.has(info.id));
        return;
      }
      this._turn.push(info);
      const runs = isBusy && !info.time?.completed && !info.error;
      for (const part of message.parts) {
        this._part(part, info, runs);
      }
      if (info.error) {
        this._ended(info, i === last);
      }
      if (i === last && !isBusy) {
        this._endTurn();
      }
    });
    return this._entries;
  }

  private _prompt(message: Message, queued: boolean): void {
    const said = promptText(message) !== '';
    const files = message.parts.some(part => part.type === 'file' && !part.synthetic);
    const subtask = message.parts.some(part => part.type === 'subtask');
    if (said || files || subtask) {
      this._add({ kind: 'prompt', key: message.info.id, message, queued });
    }
    const compaction = message.parts.find(part => part.type === 'compaction');
    if (compaction) {
      this._add({ kind: 'mark', key: compaction.id, mark: 'compacted', part: compaction });
    }
  }

  private _part(part: Part, info: MessageInfo, runs: boolean): void {
    const { id: key } = part;
    switch (part.type) {
      case 'text':
      case 'reasoning': {
        if (part.text?.trim() && !part.synthetic && !part.ignored) {
          const kind = info.summary === true && part.type === 'text' ? 'summary' : part.type;
          this._add({ kind, key, part, live: runs && !isEnded(part) });
        }
        break;
      }
      case 'tool':
        this._tool(part);
        break;
      case 'file':
        this._add({ kind: 'file', key, part });
        break;
      case 'retry':
        this._add({ kind: 'mark', key, mark: 'retried', part });
        break;
    }
  }

  private _tool(part: Part): void {
    const last = this._entries[this._entries.length - 1];
    if (isRead(part) && last?.kind === 'reads') {
      this._entries[this._entries.length - 1] = { ...last, parts: [...last.parts, part] };
    } else if (isRead(part) && last?.kind === 'tool' && isRead(last.part)) {
      // The key stays: who looks at the first call looks at the group then.
      this._entries[this._entries.length - 1] = { kind: 'reads', key: last.key, parts: [last.part, part] };
    } else {
      this._add({ kind: 'tool', key: part.id, part });
    }
  }

  private _ended(info: MessageInfo, last: boolean): void {
    const key = `error\n${info.id}`;
    this._add(
      wasStopped(info)
        ? { kind: 'mark', key, mark: 'stopped', part: null }
        : { kind: 'error', key, info, last: last && !this._circumstances.isBusy }
    );
  }

  private _endTurn(): void {
    const turn = this._turn;
    this._turn = [];
    if (!turn.length) {
      return;
    }
    const first = turn[0];
    const last = turn[turn.length - 1];
    const entry: TurnEntry = {
      kind: 'turn',
      key: `turn\n${first.id}`,
      cost: sum(turn.map(({ cost }) => cost)),
      tokens: sum(turn.flatMap(({ tokens }) => [tokens?.input, tokens?.output, tokens?.reasoning])),
      milliseconds: Math.max(0, (last.time?.completed ?? 0) - (first.time?.created ?? 0)),
      model: last.modelID ?? null
    };
    if (entry.cost || entry.tokens) {
      this._add(entry);
    }
  }

  private _add(entry: Entry): void {
    this._entries.push(entry);
  }

  private readonly _entries: Entry[] = [];
  /** The assistant's messages since the last prompt. */
  private _turn: MessageInfo[] = [];
}

/** A call that read something, or is about to: an error is shown for itself. */
function isRead(part: Part): boolean {
  return READS.has(part.tool ?? '') && part.state?.status !== 'error';
}

function sum(numbers: unknown[]): number {
  return numbers.reduce<number>((total, one) => total + (typeof one === 'number' ? one : 0), 0);
}

function isSame(a: Entry, b: Entry): boolean {
  const ours = a as unknown as Record<string, unknown>;
  const theirs = b as unknown as Record<string, unknown>;
  return (
    Object.keys(ours).length === Object.keys(theirs).length &&
    Object.keys(theirs).every(name => {
      const [one, other] = [ours[name], theirs[name]];
      return (
        one === other ||
        (Array.isArray(one) &&
          Array.isArray(other) &&
          one.length === other.length &&
          one.every((item, i) => item === other[i]))
      );
    })
  );
}
