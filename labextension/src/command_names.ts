/**
 * What the commands of ocman are called, and how their arguments name what they are about.
 */
import { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { LOCAL } from './records';
import { Subject } from './subject';

export const CommandIDs = {
  showPanel: 'ocman:show-panel',
  refresh: 'ocman:refresh',
  newWorktreeSession: 'ocman:new-worktree-session',
  newWorktreeSessionHere: 'ocman:new-worktree-session-here',
  newWorktreeSessionInFolder: 'ocman:new-worktree-session-in-folder',
  openSession: 'ocman:open-session',
  openDiff: 'ocman:open-diff',
  newSession: 'ocman:new-session',
  newHere: 'ocman:new-here',
  showDetails: 'ocman:show-details',
  renameSession: 'ocman:rename-session',
  forkSession: 'ocman:fork-session',
  abortSession: 'ocman:abort-session',
  deleteSession: 'ocman:delete-session',
  removeWorktree: 'ocman:remove-worktree',
  remakeWorktree: 'ocman:remake-worktree',
  explainWorktree: 'ocman:explain-worktree',
  startOpencode: 'ocman:start-opencode',
  stopOpencode: 'ocman:stop-opencode',
  restartOpencode: 'ocman:restart-opencode',
  copyPath: 'ocman:copy-path',
  openTerminalHere: 'ocman:open-terminal-here',
  openFolder: 'ocman:open-folder',
  showRowMenu: 'ocman:show-row-menu',
  allowOnce: 'ocman:allow-once',
  allowAlways: 'ocman:allow-always',
  rejectAsk: 'ocman:reject-ask',
  nextMessage: 'ocman:next-message',
  previousMessage: 'ocman:previous-message',
  toggleMessage: 'ocman:toggle-message',
  focusMessages: 'ocman:focus-messages',
  focusText: 'ocman:focus-text',
  sendMessage: 'ocman:send-message',
  nextFile: 'ocman:next-file',
  previousFile: 'ocman:previous-file',
  nextChange: 'ocman:next-change',
  previousChange: 'ocman:previous-change'
} as const;

const HOST = { type: 'string', description: 'Id of the host; this server when absent.' };

/** Arguments that name one session; without them the command is about what the user points at. */
export const SESSION_ARGS = {
  type: 'object',
  properties: { host: HOST, id: { type: 'string', description: 'Id of the session.' } }
};

/** Arguments that name one worktree. */
export const WORKTREE_ARGS = {
  type: 'object',
  properties: { host: HOST, path: { type: 'string', description: 'Absolute path of the worktree.' } }
};

/** Arguments that name one repository. */
export const REPOSITORY_ARGS = {
  type: 'object',
  properties: { host: HOST, root: { type: 'string', description: 'Absolute path of the main checkout.' } }
};

export const ANY_ARGS = {
  type: 'object',
  properties: { ...SESSION_ARGS.properties, ...WORKTREE_ARGS.properties, ...REPOSITORY_ARGS.properties }
};

export const NO_ARGS = { type: 'object', properties: {} };

/** What the arguments name; `null` when they name nothing. */
export function subjectFrom(args: ReadonlyPartialJSONObject): Subject | null {
  const host = typeof args.host === 'string' && args.host ? args.host : LOCAL;
  if (typeof args.id === 'string') {
    return { kind: 'session', host, id: args.id };
  }
  if (typeof args.path === 'string') {
    return { kind: 'worktree', host, path: args.path };
  }
  return typeof args.root === 'string' ? { kind: 'repository', host, root: args.root } : null;
}

/** The arguments that name it again. */
export function argsOf({ kind: _, ...names }: Subject): ReadonlyPartialJSONObject {
  return names;
}
