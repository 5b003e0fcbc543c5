/**
 * The words of an ask, the same everywhere: what would be done, to what, and what "always" grants.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { Ask, Message, ToolState } from './records';
import { KnownAsk, isWithin } from './state';

/** A click or keystroke that was meant for something else allows nothing, in milliseconds. */
export const SETTLE = 350;

/** Longer than this no sentence of a screen reader quotes. */
const SPOKEN = 200;

/** Characters that show nothing, or turn others round, as their code: what is allowed must be what is read. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  );
}

/** A permission in plain words; one that is not known here by its own name. */
export function permissionName(permission: string, trans: TranslationBundle): string {
  switch (permission) {
    case 'external_directory':
      return trans.__('work outside the worktree');
    case 'bash':
      return trans.__('run a command');
    case 'edit':
    case 'write':
      return trans.__('edit a file');
    case 'read':
      return trans.__('read a file');
    case 'webfetch':
      return trans.__('fetch an address');
    case 'websearch':
      return trans.__('search the web');
    case 'glob':
    case 'grep':
      return trans.__('search');
    case 'task':
      return trans.__('start a subagent');
    case 'skill':
      return trans.__('use a skill');
    case 'doom_loop':
      return trans.__('go on repeating');
    default:
      return permission;
  }
}

/** What an ask is about: the deed and its object. */
export function askText(ask: Ask, trans: TranslationBundle): { deed: string; object: string } {
  const { deed, object } = plainAskText(ask, trans);
  return { deed, object: ask.kind === 'permission' ? visible(object) : object };
}

function plainAskText(ask: Ask, trans: TranslationBundle): { deed: string; object: string } {
  if (ask.kind === 'question') {
    return { deed: trans.__('asks'), object: ask.questions[0]?.question ?? '' };
  }
  const patterns = ask.patterns.join(', ');
  const file = said(ask, ...FILE) ?? patterns;
  switch (ask.permission) {
    case 'external_directory':
      return { deed: trans.__('outside the worktree:'), object: said(ask, ...FILE, 'command') ?? patterns };
    case 'bash':
      return { deed: trans.__('run'), object: said(ask, 'command') ?? patterns };
    case 'edit':
    case 'write':
      return { deed: trans.__('edit'), object: file };
    case 'read':
      return { deed: trans.__('read'), object: file };
    case 'webfetch':
      return { deed: trans.__('fetch'), object: said(ask, 'url') ?? patterns };
    case 'websearch':
      return { deed: trans.__('search the web for'), object: patterns };
    case 'glob':
    case 'grep':
      return { deed: trans.__('search for'), object: patterns };
    case 'task':
      return { deed: trans.__('start the subagent'), object: patterns };
    case 'skill':
      return { deed: trans.__('use the skill'), object: patterns };
    case 'doom_loop':
      return { deed: trans.__('go on repeating'), object: patterns };
    default:
      return { deed: ask.permission ?? '', object: patterns };
  }
}

/** What the reply "always" allows; empty when it allows nothing more. */
export function alwaysPatterns(ask: Ask): string[] {
  return (ask.always ?? ask.patterns).map(visible);
}

/** What the reply "always" allows, in words that the patterns follow. */
export function alwaysSentence(ask: Ask, trans: TranslationBundle): string {
  if ((ask.always ?? ask.patterns).includes('*')) {
    return trans.__('Always would allow everything that needs the permission “%1”:', ask.permission ?? '');
  }
  switch (ask.permission) {
    case 'external_directory':
      return trans.__('Always would allow all work on what is at');
    case 'bash':
      return trans.__('Always would allow each command that matches');
    case 'edit':
    case 'write':
      return trans.__('Always would allow editing each file that matches');
    case 'read':
      return trans.__('Always would allow reading each file that matches');
    case 'webfetch':
      return trans.__('Always would allow fetching each address that matches');
    case 'doom_loop':
      return trans.__('Always would allow repeating calls of');
    default:
      return trans.__('Always would allow “%1” for all that matches', ask.permission ?? '');
  }
}

export function outcomeText(known: KnownAsk, trans: TranslationBundle): string {
  const words: Record<string, string> = {
    once: trans.__('Allowed once'),
    always: trans.__('Allowed always'),
    reject: trans.__('Rejected'),
    answered: trans.__('Answered'),
    gone: trans.__('No longer asked')
  };
  const word = words[known.reply ?? 'gone'];
  if (known.mine) {
    return word;
  }
  return known.reply === 'gone'
    ? trans.__('Answered elsewhere')
    : trans.__('Answered elsewhere: %1', word.toLocaleLowerCase());
}

/** An ask as one sentence, for a live region. */
export function askSentence(ask: Ask, trans: TranslationBundle): string {
  const { deed, object } = askText(ask, trans);
  const what = object.length > SPOKEN ? `${object.slice(0, SPOKEN)}…` : object;
  return ask.kind === 'question'
    ? trans.__('%1 asks: %2', ask.title, what)
    : trans.__('%1 needs a permission: %2 %3', ask.title, deed, what);
}

// --- what would be done, in full -----------------------------------------------------------------

/** One thing that is to be allowed, as it is: a command, a path, an address, a change or something else. */
export interface AskFact {
  readonly kind: 'command' | 'file' | 'url' | 'diff' | 'patterns' | 'more';
  readonly text: string;
}

/** Everything that is known of what a permission is asked for; no fact is left out, none is shortened. */
export function askFacts(ask: Ask): AskFact[] {
  const facts: AskFact[] = [];
  const used = new Set<string>();
  const add = (kind: AskFact['kind'], ...names: string[]) => {
    const name = names.find(name => said(ask, name) !== null);
    if (name) {
      used.add(name);
      facts.push({ kind, text: visible(said(ask, name)!) });
    }
  };
  add('command', 'command');
  add('url', 'url');
  add('file', ...FILE);
  add('diff', 'diff');
  // The patterns say what is asked when nothing else does, and which of several things of a deed are.
  const told = new Set(facts.map(({ text }) => text));
  const patterns = ask.patterns.map(visible).filter(pattern => !told.has(pattern));
  patterns.forEach(pattern => told.add(pattern));
  if (patterns.length && (!facts.length || ask.permission !== 'edit')) {
    facts.push({ kind: 'patterns', text: patterns.join('\n') });
  }
  const lines: string[] = [];
  for (const [name, value] of Object.entries(ask.metadata ?? {})) {
    const text = typeof value === 'string' ? value : asJson(value);
    const isRepeated =
      told.has(visible(text)) ||
      text === asJson(ask.patterns) ||
      FOLDERS.has(name) ||
      (used.has('diff') && DIFFS.has(name));
    if (!used.has(name) && !isRepeated && !isEmpty(value)) {
      lines.push(`${name}: ${text}`);
    }
  }
  if (lines.length) {
    facts.push({ kind: 'more', text: visible(lines.join('\n')) });
  }
  return facts;
}

/** Whether what is asked for certainly lies outside of the session's directory. */
export function isOutside(ask: Ask, directory: string): boolean {
  if (ask.permission === 'external_directory') {
    return true;
  }
  const named = ask.permission === 'read' || ask.permission === 'edit' ? ask.patterns : [];
  return [said(ask, ...FILE) ?? '', ...named].some(path =>
    path.startsWith('/') ? !isWithin(path, directory) : path === '..' || path.startsWith('../')
  );
}

/**
 * The tool call during which an ask came, when only one runs: the ask itself may name a folder alone.
 */
export function runningTool(messages: readonly Message[]): { tool: string; input: string } | null {
  const running: { tool: string; state: ToolState }[] = [];
  for (const { parts } of messages.slice(-3)) {
    for (const { tool, state } of parts) {
      if (tool && state?.status === 'running') {
        running.push({ tool, state });
      }
    }
  }
  if (running.length !== 1) {
    return null;
  }
  const [{ tool, state }] = running;
  const input = state.input ?? {};
  const main = ['command', 'filePath', 'path', 'url', 'pattern', 'description']
    .map(name => input[name])
    .find(value => typeof value === 'string' && value);
  return { tool: visible(tool), input: visible(typeof main === 'string' ? main : asJson(input)) };
}

const FILE = ['filepath', 'filePath', 'path'];

/** The folders of the patterns. */
const FOLDERS = new Set(['parentDir', 'directories']);

/** The same changes as in `diff`, in other shapes. */
const DIFFS = new Set(['filediff', 'files']);

function said(ask: Ask, ...names: string[]): string | null {
  for (const name of names) {
    const value = ask.metadata?.[name];
    if (typeof value === 'string' && value) {
      return value;
    }
  }
  return null;
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || value === '' || (Array.isArray(value) && !value.length);
}

function asJson(value: unknown): string {
  return JSON.stringify(value, null, 1) ?? String(value);
}
