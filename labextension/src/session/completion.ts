/**
 * What a text in the composer means, and what can be completed at the caret.
 */
import { ISignal, Signal } from '@lumino/signaling';
import { IDisposable } from '@lumino/disposable';
import { Api } from '../api';
import { ApiError } from '../errors';
import { SessionOptions } from '../records';
import { fromKey } from '../state';

/** What sending a text does. */
export type Deed =
  | { readonly kind: 'prompt'; readonly text: string }
  | { readonly kind: 'shell'; readonly command: string }
  | { readonly kind: 'command'; readonly name: string; readonly args: string };

/** The token at the caret that can be completed; it stands at [from, to) with its mark, `query` is without. */
export interface Token {
  readonly kind: 'file' | 'command';
  readonly query: string;
  readonly from: number;
  readonly to: number;
}

export interface Edited {
  readonly text: string;
  readonly caret: number;
}

/** `!` as the first character runs the shell, `/` a command; after a space they are text like any other. */
export function deedOf(text: string): Deed {
  if (text.startsWith('!')) {
    return { kind: 'shell', command: text.slice(1).trim() };
  }
  const command = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(text);
  return command
    ? { kind: 'command', name: command[1], args: (command[2] ?? '').trim() }
    : { kind: 'prompt', text: text.trim() };
}

/** What is being completed at the caret: `@` at the start of a word, `/` at the start of the text. */
export function tokenAt(text: string, caret: number): Token | null {
  if (text.startsWith('!')) {
    return null;
  }
  let from = caret;
  while (from > 0 && !/\s/.test(text[from - 1])) {
    from -= 1;
  }
  let to = caret;
  while (to < text.length && !/\s/.test(text[to])) {
    to += 1;
  }
  if (from === 0 && caret > 0 && text[0] === '/') {
    return { kind: 'command', query: text.slice(1, caret), from, to };
  }
  // A mention may stand in brackets or quotes.
  from += /^["'`([{<]*/.exec(text.slice(from, caret))![0].length;
  while (to > caret && /["'`)\]}>.,;:!?]/.test(text[to - 1])) {
    to -= 1;
  }
  return text[from] === '@' && caret > from
    ? { kind: 'file', query: text.slice(from + 1, caret), from, to }
    : null;
}

/** The text with a choice in the place of a token, and the caret behind it. */
export function applyChoice(text: string, token: Token, choice: string): Edited {
  const mark = token.kind === 'file' ? '@' : '/';
  const after = text.slice(token.to);
  const written = mark + choice + (/^\s/.test(after) ? '' : ' ');
  const caret = token.from + mark.length + choice.length + 1;
  return { text: text.slice(0, token.from) + written + after, caret };
}

/** Which of the chosen files a text still mentions. */
export function mentioned(text: string, files: readonly string[]): string[] {
  return files.filter(path => {
    for (let at = text.indexOf(`@${path}`); at >= 0; at = text.indexOf(`@${path}`, at + 1)) {
      const before = text[at - 1] ?? ' ';
      // A full stop may end the sentence, or go on as another file's name.
      const after = text.slice(at + path.length + 1);
      if (/[\s"'`([{<]/.test(before) && /^(?:[.,;:!?)\]}>"'`]*(?:\s|$))/.test(after)) {
        return true;
      }
    }
    return false;
  });
}

/** The entries whose name holds the words of `query`, those that begin with it first. */
export function matching<T>(entries: readonly T[], query: string, nameOf: (entry: T) => string): T[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const first: T[] = [];
  const others: T[] = [];
  for (const entry of entries) {
    const name = nameOf(entry).toLowerCase();
    if (words.every(word => name.includes(word))) {
      (words.length && name.startsWith(words[0]) ? first : others).push(entry);
    }
  }
  return [...first, ...others];
}

/** Whether the characters of `query` stand in `name` in this order. */
function fits(name: string, query: string): boolean {
  const text = name.toLowerCase();
  let at = 0;
  for (const character of query.toLowerCase()) {
    at = text.indexOf(character, at) + 1;
    if (!at) {
      return false;
    }
  }
  return true;
}

// --- asked from the server -----------------------------------------------------------------------

type Requests = Pick<Api, 'files' | 'options'>;

/** The agents, models and commands of a session, asked for once. */
export class SessionChoices {
  constructor(
    private _api: Requests,
    private _sessionKey: string
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get value(): SessionOptions | null {
    return this._value;
  }

  get error(): ApiError | null {
    return this._error;
  }

  /** What there is to choose from, as it was read before unless `anew`.  Rejects with an `ApiError`. */
  load(anew = false): Promise<SessionOptions> {
    if (anew || !this._loading) {
      this._loading = this._load();
    }
    return this._loading;
  }

  private async _load(): Promise<SessionOptions> {
    const { host, id } = fromKey(this._sessionKey);
    try {
      this._value = await this._api.options(id, host);
      this._error = null;
      return this._value;
    } catch (reason) {
      this._loading = null;
      this._error = ApiError.from(reason);
      throw this._error;
    } finally {
      this._changed.emit();
    }
  }

  private _value: SessionOptions | null = null;
  private _error: ApiError | null = null;
  private _loading: Promise<SessionOptions> | null = null;
  private readonly _changed = new Signal<this, void>(this);
}

/** One suggestion: what is written for it, and what is said of it. */
export interface Item {
  readonly value: string;
  readonly detail: string | null;
}

/** Typing is one question, in milliseconds. */
export const ASKED_AFTER = 120;

/** More suggestions are not shown. */
const MOST_ITEMS = 50;

/** The suggestions for the token at the caret. */
export class Completion implements IDisposable {
  constructor(
    private _api: Requests,
    private _sessionKey: string,
    private _choices: SessionChoices
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** What is completed; `null` while nothing is, also after `close`. */
  get token(): Token | null {
    return this._token;
  }

  get items(): readonly Item[] {
    return this._items;
  }

  /** The index of the suggestion that `accept` takes. */
  get active(): number {
    return this._active;
  }

  get isLoading(): boolean {
    return this._isLoading;
  }

  get error(): ApiError | null {
    return this._error;
  }

  /** There are suggestions to choose from. */
  get isOpen(): boolean {
    return this._token !== null && this._items.length > 0;
  }

  get isDisposed(): boolean {
    return this._disposed;
  }

  /** The text or the caret is another one now. */
  update(text: string, caret: number): void {
    const token = tokenAt(text, caret);
    const closed = this._closed;
    if (!token || (closed && token.kind === closed.kind && token.from === closed.from)) {
      this._closed = token && closed;
      this._show(null);
      return;
    }
    this._closed = null;
    const shown = this._token;
    this._text = text;
    if (shown && shown.kind === token.kind && shown.from === token.from && shown.query === token.query) {
      this._token = token;
      return;
    }
    // Until the answer is there those of the old suggestions stay that still fit, so that nothing flickers.
    const items = shown?.kind === token.kind && shown.from === token.from ? this._items : [];
    this._show(token, items.filter(({ value }) => fits(value, token.query)), true);
    const turn = ++this._turn;
    if (token.kind === 'command') {
      void this._ask(turn, async () => this._commands(await this._choices.load(), token));
    } else {
      this._timer = setTimeout(() => void this._ask(turn, () => this._files(token)), ASKED_AFTER);
    }
  }

  /** Make another suggestion the active one. */
  move(by: number): void {
    const count = this._items.length;
    if (count) {
      this._active = (this._active + by + count) % count;
      this._changed.emit();
    }
  }

  /** The text with a suggestion in it, by default the active one; `file` is the path that is mentioned now. */
  accept(index: number = this._active): (Edited & { file: string | null }) | null {
    const item = this._items[index];
    if (!this._token || !item) {
      return null;
    }
    const file = this._token.kind === 'file' ? item.value : null;
    const edited = applyChoice(this._text, this._token, item.value);
    this._show(null);
    return { ...edited, file };
  }

  /** Suggest nothing more for this token. */
  close(): void {
    this._closed = this._token;
    this._show(null);
  }

  dispose(): void {
    this._disposed = true;
    this._turn += 1;
    clearTimeout(this._timer);
    Signal.clearData(this);
  }

  private async _ask(turn: number, find: () => Promise<Item[]>): Promise<void> {
    let items: Item[] = [];
    let error: ApiError | null = null;
    try {
      items = await find();
    } catch (reason) {
      error = ApiError.from(reason);
    }
    // Only the answer to what stands in the text now counts.
    if (turn === this._turn) {
      this._show(this._token, items, false, error);
    }
  }

  private async _files(token: Token): Promise<Item[]> {
    const { host, id } = fromKey(this._sessionKey);
    const files = await this._api.files(id, token.query, host);
    return files.slice(0, MOST_ITEMS).map(value => ({ value, detail: null }));
  }

  private _commands(options: SessionOptions, token: Token): Item[] {
    const found = matching(options.commands, token.query, ({ name }) => name);
    // One that is written in full needs no suggestion: Enter sends it.
    return found.length === 1 && found[0].name === token.query
      ? []
      : found.slice(0, MOST_ITEMS).map(({ name, description }) => ({ value: name, detail: description }));
  }

  private _show(
    token: Token | null,
    items: readonly Item[] = [],
    isLoading = false,
    error: ApiError | null = null
  ): void {
    if (!token) {
      if (!this._token) {
        return;
      }
      this._turn += 1;
    }
    clearTimeout(this._timer);
    if (items !== this._items) {
      this._active = 0;
    }
    this._token = token;
    this._items = items;
    this._isLoading = isLoading;
    this._error = error;
    this._changed.emit();
  }

  private _text = '';
  private _token: Token | null = null;
  /** The token for which nothing is suggested any more. */
  private _closed: Token | null = null;
  private _items: readonly Item[] = [];
  private _active = 0;
  private _isLoading = false;
  private _error: ApiError | null = null;
  private _turn = 0;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _disposed = false;
  private readonly _changed = new Signal<this, void>(this);
}
