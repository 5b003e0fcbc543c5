/**
 * Unified patches, read into hunks with line numbers.  Pure, one pass, and safe on any text.
 */

export type LineKind = 'context' | 'added' | 'removed';

/** A part of a line: from the first character up to before the second. */
export type Span = readonly [number, number];

export interface Line {
  readonly kind: LineKind;
  /** Number in the old file (of a combined patch: in the first parent); `null` where it has none. */
  readonly old: number | null;
  readonly new: number | null;
  /** Without its sign and its line feed; a carriage return stays. */
  readonly text: string;
  /** The file ends here, without a line feed. */
  readonly isUnended?: boolean;
}

export interface Hunk {
  readonly oldStart: number | null;
  readonly newStart: number | null;
  /** What git says stands above it: a function's first line, or nothing. */
  readonly section: string;
  readonly lines: readonly Line[];
}

export interface FilePatch {
  /** `null`: there was no such file. */
  readonly oldPath: string | null;
  /** `null`: there is no such file now. */
  readonly newPath: string | null;
  readonly status: 'added' | 'modified' | 'deleted' | 'renamed' | 'copied';
  readonly oldMode: string | null;
  readonly newMode: string | null;
  readonly isBinary: boolean;
  /** Against several parents, as in a merge. */
  readonly isCombined: boolean;
  /** Every line was understood, and no hunk is shorter than it says. */
  readonly isComplete: boolean;
  readonly hunks: readonly Hunk[];
}

type Draft = { -readonly [K in keyof FilePatch]: FilePatch[K] } & { hunks: Hunk[] };

/** A hunk's numbers are not believed beyond this. */
const HIGHEST = 2 ** 31;

/** The files of a patch, in its order. */
export function parsePatch(patch: string): FilePatch[] {
  return new Reader(patch).read();
}

class Reader {
  constructor(private _text: string) {}

  read(): FilePatch[] {
    for (let line = this._next(); line !== null; line = this._next()) {
      this._header(line);
    }
    return this._files;
  }

  /** The next line without its line feed; `null` at the end. */
  private _next(): string | null {
    if (this._at >= this._text.length) {
      return null;
    }
    const feed = this._text.indexOf('\n', this._at);
    const end = feed < 0 ? this._text.length : feed;
    const line = this._text.slice(this._at, end);
    this._before = this._at;
    this._at = end + 1;
    return line;
  }

  /** Read the last line again. */
  private _back(): void {
    this._at = this._before;
  }

  private _header(line: string): void {
    const text = line.endsWith('\r') ? line.slice(0, -1) : line;
    if (text.startsWith('diff --git ')) {
      this._begin();
      const [old, now] = gitPaths(text.slice(11));
      this._file!.oldPath = old;
      this._file!.newPath = now;
    } else if (text.startsWith('diff --cc ') || text.startsWith('diff --combined ')) {
      this._begin();
      const path = unquoted(text.slice(text.indexOf(' ', 5) + 1));
      Object.assign(this._file!, { oldPath: path, newPath: path, isCombined: true });
    } else if (text.startsWith('Index: ')) {
      this._begin();
    } else if (text.startsWith('--- ')) {
      this._oldName(text.slice(4));
    } else if (text.startsWith('@@')) {
      this._hunk(text);
    } else if (this._file && this._file.hunks.length === 0) {
      this._extended(this._file, text);
    } else if (/^[-+ ]/.test(text) && text !== '-- ') {
      // More lines than the hunk said.
      if (this._file) {
        this._file.isComplete = false;
      }
    } else if (text !== '') {
      // A mail's signature, or the next commit's message.
      this._file = null;
    }
  }

  private _begin(): void {
    this._file = {
      oldPath: null,
      newPath: null,
      status: 'modified',
      oldMode: null,
      newMode: null,
      isBinary: false,
      isCombined: false,
      isComplete: true,
      hunks: []
    };
    this._files.push(this._file);
  }

  private _oldName(rest: string): void {
    const next = this._next();
    if (next === null || !next.startsWith('+++ ')) {
      if (next !== null) {
        this._back();
      }
      if (this._file) {
        this._file.isComplete = false;
      }
      return;
    }
    if (!this._file || this._file.hunks.length > 0) {
      this._begin();
    }
    const file = this._file!;
    const old = name(rest, 'a/');
    const now = name(next.endsWith('\r') ? next.slice(4, -1) : next.slice(4), 'b/');
    file.oldPath = old;
    file.newPath = now;
    file.status = old === null ? 'added' : now === null ? 'deleted' : file.status;
  }

  private _extended(file: Draft, text: string): void {
    const after = (start: string): string | null =>
      text.startsWith(start) ? text.slice(start.length) : null;
    const oldMode = after('old mode ') ?? after('deleted file mode ');
    const newMode = after('new mode ') ?? after('new file mode ');
    const from = after('rename from ') ?? after('copy from ');
    const to = after('rename to ') ?? after('copy to ');
    file.oldMode = oldMode ?? file.oldMode;
    file.newMode = newMode ?? file.newMode;
    if (text.startsWith('new file mode ')) {
      file.status = 'added';
      file.oldPath = null;
    } else if (text.startsWith('deleted file mode ')) {
      file.status = 'deleted';
      file.newPath = null;
    } else if (from !== null) {
      file.status = text.startsWith('copy') ? 'copied' : 'renamed';
      file.oldPath = unquoted(from);
    } else if (to !== null) {
      file.newPath = unquoted(to);
    } else if (text.startsWith('Binary files ') || text === 'GIT binary patch') {
      file.isBinary = true;
    }
  }

  private _hunk(header: string): void {
    if (!this._file) {
      this._begin();
    }
    const file = this._file!;
    const place = ranges(header);
    const lines: Line[] = [];
    if (place) {
      file.isComplete = this._numbered(place, lines) && file.isComplete;
    } else {
      this._unnumbered(lines);
    }
    const section = place ? place.section : header.replace(/^@+ ?/, '').replace(/ ?@+$/, '');
    file.hunks.push({
      oldStart: place?.old[0].start ?? null,
      newStart: place?.new.start ?? null,
      section,
      lines
    });
  }

  /** The lines of a hunk that says how many there are.  Whether all were there. */
  private _numbered(place: Ranges, lines: Line[]): boolean {
    const parents = place.old.length;
    const left = place.old.map(({ count }) => count);
    let leftNew = place.new.count;
    let old = place.old[0].start;
    let now = place.new.start;
    for (;;) {
      const line = this._next();
      if (line === null) {
        return leftNew <= 0 && left.every(count => count <= 0);
      }
      if (line.startsWith('\\')) {
        endWithoutFeed(lines);
        continue;
      }
      // Some programs drop the blank of an empty line.
      const signs = line === '' || line === '\r' ? ' '.repeat(parents) : line.slice(0, parents);
      const isDone = leftNew <= 0 && left.every(count => count <= 0);
      if (isDone || signs.length < parents || !/^[-+ ]+$/.test(signs)) {
        this._back();
        return isDone;
      }
      const kind = signs.includes('-') ? 'removed' : signs.includes('+') ? 'added' : 'context';
      const inOld = signs[0] === '-' || (signs[0] === ' ' && kind !== 'removed');
      lines.push({
        kind,
        old: inOld ? old : null,
        new: kind === 'removed' ? null : now,
        text: line === '' || line === '\r' ? line : line.slice(parents)
      });
      old += inOld ? 1 : 0;
      if (kind !== 'removed') {
        now += 1;
        leftNew -= 1;
      }
      for (let i = 0; i < parents; i++) {
        left[i] -= signs[i] === '-' || (signs[i] === ' ' && kind !== 'removed') ? 1 : 0;
      }
    }
  }

  /** The lines of a hunk without numbers, as agents write them: up to what cannot be one. */
  private _unnumbered(lines: Line[]): void {
    for (let line = this._next(); line !== null; line = this._next()) {
      const kind = ({ '+': 'added', '-': 'removed', ' ': 'context' } as const)[line[0] as '+' | '-' | ' '];
      if (line.startsWith('\\')) {
        endWithoutFeed(lines);
      } else if (line === '') {
        lines.push({ kind: 'context', old: null, new: null, text: '' });
      } else if (kind && !line.startsWith('--- ')) {
        lines.push({ kind, old: null, new: null, text: line.slice(1) });
      } else {
        this._back();
        return;
      }
    }
  }

  private _at = 0;
  private _before = 0;
  private _file: Draft | null = null;
  private readonly _files: Draft[] = [];
}

function endWithoutFeed(lines: Line[]): void {
  const last = lines.pop();
  if (last) {
    lines.push({ ...last, isUnended: true });
  }
}

interface Range {
  readonly start: number;
  readonly count: number;
}

interface Ranges {
  /** One for each parent. */
  readonly old: readonly Range[];
  readonly new: Range;
  readonly section: string;
}

/** The numbers of `@@ -1,2 +3,4 @@ section`, or of `@@@ -1,2 -1,2 +3,4 @@@` and more parents. */
function ranges(header: string): Ranges | null {
  const marks = /^@{2,16}/.exec(header)?.[0] ?? '';
  const end = header.indexOf(' ' + marks, marks.length);
  if (!marks || end < 0 || end > 500) {
    return null;
  }
  const words = header.slice(marks.length, end).trim().split(' ');
  const found = words.map(word => /^([-+])(\d{1,12})(?:,(\d{1,12}))?$/.exec(word));
  const isSane =
    words.length === marks.length &&
    found.every((match, i) => match !== null && match[1] === (i === words.length - 1 ? '+' : '-'));
  if (!isSane) {
    return null;
  }
  const all = found.map(match => ({
    start: Math.min(Number(match![2]), HIGHEST),
    count: Math.min(Number(match![3] ?? 1), HIGHEST)
  }));
  return {
    old: all.slice(0, -1),
    new: all[all.length - 1],
    section: header.slice(end + marks.length + 1).trim()
  };
}

// --- names of files ------------------------------------------------------------------------------

/** The path of a `---` or `+++` line. */
function name(rest: string, prefix: string): string | null {
  // A tab parts a time from the name.
  const tab = rest.startsWith('"') ? -1 : rest.indexOf('\t');
  const path = unquoted(tab < 0 ? rest : rest.slice(0, tab));
  if (path === '/dev/null') {
    return null;
  }
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/** Both paths of a `diff --git` line, as far as they can be told apart; later lines say it better. */
function gitPaths(rest: string): [string | null, string | null] {
  const bare = (path: string): string => path.replace(/^[ab]\//, '');
  if (rest.startsWith('"')) {
    const end = closingQuote(rest);
    return [bare(unquoted(rest.slice(0, end + 1))), bare(unquoted(rest.slice(end + 2)))];
  }
  // The same name twice is the case without later lines.
  const half = (rest.length - 1) / 2;
  const first = rest.slice(0, half);
  const second = rest.slice(half + 1);
  if (rest[half] === ' ' && bare(first) === bare(second)) {
    return [bare(first), bare(second)];
  }
  const cut = rest.indexOf(' b/');
  return cut < 0 ? [null, null] : [bare(rest.slice(0, cut)), bare(rest.slice(cut + 1))];
}

function closingQuote(text: string): number {
  for (let i = 1; i < text.length; i++) {
    if (text[i] === '\\') {
      i += 1;
    } else if (text[i] === '"') {
      return i;
    }
  }
  return text.length;
}

const ESCAPES: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

/** A path as git quotes it (octal bytes of UTF-8) as what it is. */
function unquoted(path: string): string {
  if (!path.startsWith('"')) {
    return path;
  }
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  const end = closingQuote(path);
  for (let i = 1; i < end; ) {
    const octal = path[i] === '\\' ? /^[0-3][0-7]{2}/.exec(path.slice(i + 1, i + 4)) : null;
    if (octal) {
      bytes.push(parseInt(octal[0], 8));
      i += 4;
    } else if (path[i] === '\\') {
      bytes.push(ESCAPES[path[i + 1]] ?? path.charCodeAt(i + 1));
      i += 2;
    } else {
      const character = String.fromCodePoint(path.codePointAt(i)!);
      bytes.push(...encoder.encode(character));
      i += character.length;
    }
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}
