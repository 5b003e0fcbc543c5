/**
 * How the things of a conversation are called, and how their numbers are said.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { MessageInfo, Part, ToolState } from '../records';
import { isWithin } from '../state';

/** A path as it is read in its session: relative to the session's directory where it lies in it. */
export function localPath(path: string, directory: string): string {
  return directory && path !== directory && isWithin(path, directory)
    ? path.slice(directory.replace(/\/+$/, '').length + 1)
    : path;
}

/** A path in a session as the server knows it. */
export function fullPath(path: string, directory: string): string {
  const inside = path.replace(/^(?:\.\/)+/, '');
  return path.startsWith('/') || !directory ? path : `${directory.replace(/\/+$/, '')}/${inside}`;
}

/** What a link to a file names: `path`, `path:12`, `path:12:3` or `path#L12`. */
export function fileAndLine(link: string): { path: string; line?: number } {
  const found = /^(.+?)(?::(\d+)(?::\d+)?|#L(\d+)(?:-L?\d+)?)$/.exec(link);
  return found ? { path: found[1], line: Number(found[2] ?? found[3]) } : { path: link };
}

/** The names under which tools take what they work on, the telling ones first. */
const SUBJECTS = ['command', 'filePath', 'path', 'pattern', 'url', 'query', 'description', 'name', 'prompt'];

const PATHS = new Set(['filePath', 'path']);

/** What a tool call is about, in one line. */
export function toolSubject(part: Part, directory: string): string {
  const input = part.state?.input ?? {};
  if (part.tool === 'todowrite' || part.tool === 'todoread') {
    return '';
  }
  const names = part.tool === 'task' ? ['description', ...SUBJECTS] : SUBJECTS;
  for (const name of names) {
    const value = input[name];
    if (typeof value === 'string' && value.trim()) {
      return oneLine(PATHS.has(name) ? localPath(value, directory) : value, 300);
    }
  }
  return oneLine(part.state?.title ?? '', 300);
}

/** The file that a tool call reads or writes. */
export function toolPath(part: Part): string | null {
  const path = part.state?.input?.filePath ?? part.state?.metadata?.filepath;
  return typeof path === 'string' && path ? path : null;
}

export function toolWord(status: ToolState['status'] | undefined, trans: TranslationBundle): string {
  switch (status) {
    case 'running':
      return trans.__('running');
    case 'completed':
      return trans.__('ok');
    case 'error':
      return trans.__('failed');
    default:
      return trans.__('waiting');
  }
}

/** How long something took, in milliseconds; empty when it was nothing. */
export function took(milliseconds: number, trans: TranslationBundle): string {
  const seconds = milliseconds / 1000;
  if (!(seconds >= 0.05)) {
    return '';
  }
  if (seconds < 59.95) {
    return trans.__('%1 s', seconds < 10 ? seconds.toFixed(1) : Math.round(seconds));
  }
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) {
    return trans.__('%1 min %2 s', minutes, Math.round(seconds) % 60);
  }
  return trans.__('%1 h %2 min', Math.floor(minutes / 60), minutes % 60);
}

export function byteSize(count: number, trans: TranslationBundle): string {
  if (count < 1000) {
    return trans.__('%1 B', count);
  }
  return count < 999_500
    ? trans.__('%1 kB', Math.round(count / 1000))
    : trans.__('%1 MB', (count / 1e6).toFixed(1));
}

/** A number of tokens: "950", "12.3 k", "1.2 M". */
export function tokenCount(count: number, trans: TranslationBundle): string {
  if (count < 1000) {
    return String(count);
  }
  return count < 999_950
    ? trans.__('%1 k', (count / 1000).toFixed(1))
    : trans.__('%1 M', (count / 1e6).toFixed(1));
}

/** What a turn cost, in dollars as OpenCode counts it. */
export function money(cost: number): string {
  return `$${cost < 0.1 ? cost.toFixed(4) : cost.toFixed(2)}`;
}

/** Why a message failed; `null` when it did not. */
export function failure(info: MessageInfo): string | null {
  const { error } = info;
  if (!error) {
    return null;
  }
  const message = typeof error === 'object' ? (error.data?.message ?? error.name) : error;
  return String(message || 'failed');
}

/** Somebody stopped it: that is no fault. */
export function wasStopped(info: MessageInfo): boolean {
  return info.error?.name === 'MessageAbortedError';
}

/** Terminal colours and movements, and the characters that do the same without being seen. */
const CONTROLS =
  /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** What a program printed, without what only a terminal understands. */
export function plain(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(CONTROLS, '');
}

export function oneLine(text: string, most: number): string {
  const line = plain(text.slice(0, most * 4))
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** The last line that says something. */
export function lastLine(text: string): string {
  const lines = plain(text.slice(-2000)).split(/[\n\r]/);
  for (let i = lines.length - 1; i >= 0; i--) {
    if (lines[i].trim()) {
      return lines[i].trim();
    }
  }
  return '';
}

/** The first words of a text, for those who hear it. */
export function firstWords(text: string): string {
  return oneLine(text.replace(/[`*_#>]/g, ''), 140);
}
