/**
 * What is written in the composers and was not sent yet, kept over reloads.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { IDisposable } from '@lumino/disposable';

/** Of one session. */
export interface Draft {
  readonly text: string;
  /** Paths that were chosen for mentions, whether or not they still stand in the text. */
  readonly files: readonly string[];
  /** Chosen for the next prompts; `null`: whatever the session has. */
  readonly agent: string | null;
  readonly model: string | null;
  /** What was sent, the newest last. */
  readonly history: readonly string[];
}

/** What lasts over a reload of the page: drafts by session key, the one that was changed last at the end. */
export interface SavedDrafts {
  drafts?: [string, Partial<Draft>][];
}

export const EMPTY_DRAFT: Draft = { text: '', files: [], agent: null, model: null, history: [] };

/** More sessions than this are not remembered; those that were left alone longest go. */
export const MOST_SESSIONS = 200;

/** So many prompts, and so many files, of one session are remembered. */
export const MOST_ENTRIES = 50;

/** A sent text that is longer than this is not remembered. */
const LONGEST_ENTRY = 20_000;

/** How long after a change it is saved, in milliseconds. */
export const SAVED_AFTER = 400;

export class Drafts implements IDisposable {
  /** `save` is called with what should last, a moment after it changed. */
  constructor(private _save: (saved: SavedDrafts) => void = () => undefined) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** The draft of the session with this key. */
  get(key: string): Draft {
    return this._drafts.get(key) ?? EMPTY_DRAFT;
  }

  set(key: string, facts: Partial<Draft>): void {
    const draft = { ...this.get(key), ...facts };
    this._drafts.delete(key);
    this._drafts.set(key, draft);
    this._bound();
    this._later();
    this._changed.emit();
  }

  /** A file was chosen for a mention. */
  mention(key: string, path: string): void {
    const files = this.get(key).files.filter(other => other !== path);
    this.set(key, { files: [...files, path].slice(-MOST_ENTRIES) });
  }

  /** Put a text into the history, where it can be called back from. */
  remember(key: string, text: string): void {
    if (!text.trim() || text.length > LONGEST_ENTRY) {
      return;
    }
    const history = this.get(key).history.filter(other => other !== text);
    this.set(key, { history: [...history, text].slice(-MOST_ENTRIES) });
  }

  /** A text was taken by the server: it is history, and what was written behind it meanwhile stays. */
  sent(key: string, text: string): void {
    this.remember(key, text);
    const now = this.get(key).text;
    if (now.startsWith(text)) {
      this.set(key, { text: now.slice(text.length).trimStart() });
    }
  }

  /** The session is no more. */
  forget(key: string): void {
    if (this._drafts.delete(key)) {
      this._later();
      this._changed.emit();
    }
  }

  /** Take over what was saved; what was written on this page since is newer, and stays. */
  restore(saved: SavedDrafts): void {
    const newer = this._drafts;
    this._drafts = new Map();
    for (const entry of Array.isArray(saved?.drafts) ? saved.drafts : []) {
      const [key, draft] = Array.isArray(entry) ? entry : [];
      if (typeof key === 'string' && draft && typeof draft === 'object') {
        this._drafts.set(key, readDraft(draft));
      }
    }
    for (const [key, draft] of newer) {
      const old = this.get(key);
      this._drafts.delete(key);
      this._drafts.set(key, {
        text: draft.text || old.text,
        files: [...new Set([...old.files, ...draft.files])].slice(-MOST_ENTRIES),
        agent: draft.agent ?? old.agent,
        model: draft.model ?? old.model,
        history: [...new Set([...old.history, ...draft.history])].slice(-MOST_ENTRIES)
      });
    }
    this._bound();
    this._changed.emit();
  }

  /** Save now what waits to be saved. */
  flush(): void {
    if (this._timer !== undefined) {
      clearTimeout(this._timer);
      this._timer = undefined;
      this._save(this.saved);
    }
  }

  /** What should last now. */
  get saved(): SavedDrafts {
    return { drafts: [...this._drafts] };
  }

  dispose(): void {
    if (!this._disposed) {
      this.flush();
      this._disposed = true;
      Signal.clearData(this);
    }
  }

  private _later(): void {
    if (!this._disposed) {
      this._timer ??= setTimeout(() => this.flush(), SAVED_AFTER);
    }
  }

  private _bound(): void {
    for (const key of this._drafts.keys()) {
      if (this._drafts.size <= MOST_SESSIONS) {
        return;
      }
      this._drafts.delete(key);
    }
  }

  /** In the order of their last change. */
  private _drafts = new Map<string, Draft>();
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _disposed = false;
  private readonly _changed = new Signal<this, void>(this);
}

/** The part of the browser's storage of a tab that is used. */
type TabStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

/**
 * What was written last when a page goes away: the application saves a moment later, and that page has none left.
 */
export class LastWords {
  constructor(
    private _storage: () => TabStorage,
    private _name: string
  ) {}

  /** The page goes away. */
  leave({ saved }: Drafts): void {
    try {
      this._storage().setItem(this._name, JSON.stringify(saved));
    } catch {
      // Full, or not allowed: what was saved before is what there is.
    }
  }

  /** `saved` with what the page before this one in the tab had left, once. */
  join(saved: SavedDrafts): SavedDrafts {
    try {
      const storage = this._storage();
      const left: SavedDrafts = JSON.parse(storage.getItem(this._name) ?? '{}');
      storage.removeItem(this._name);
      return { drafts: [...new Map([...(saved.drafts ?? []), ...(left.drafts ?? [])])] };
    } catch {
      return saved;
    }
  }
}

/** From a store that anyone may have written to. */
function readDraft(saved: Partial<Draft>): Draft {
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  const texts = (value: unknown) =>
    Array.isArray(value) ? value.filter(one => typeof one === 'string').slice(-MOST_ENTRIES) : [];
  return {
    text: text(saved.text) ?? '',
    files: texts(saved.files),
    agent: text(saved.agent),
    model: text(saved.model),
    history: texts(saved.history)
  };
}
