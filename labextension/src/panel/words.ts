/**
 * How things are called in the panel: words for states, ages, and the names that a screen reader says.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { Base, Instance, SessionStatus, Worktree } from '../records';
import { ElsewhereRow, RepositoryRow, Row, SessionRow, WorktreeRow } from './rows';

export function statusWord(status: SessionStatus, trans: TranslationBundle): string {
  switch (status) {
    case 'idle':
      return trans.__('idle');
    case 'busy':
      return trans.__('busy');
    case 'needs_you':
      return trans.__('needs you');
    case 'error':
      return trans.__('failed');
    case 'directory_missing':
      return trans.__('folder gone');
    default:
      return trans.__('unknown');
  }
}

export function instanceWord(instance: Instance | undefined, trans: TranslationBundle): string {
  switch (instance?.state ?? (instance ? 'running' : 'stopped')) {
    case 'running':
      return instance?.owner === 'user' ? trans.__('external') : trans.__('running');
    case 'starting':
      return trans.__('starting');
    case 'failed':
      return trans.__('failed');
    default:
      return trans.__('stopped');
  }
}

/** Time since `when`, short: "now", "5 min", "2 h", "3 d". */
export function age(when: string, now: number, trans: TranslationBundle): string {
  const then = Date.parse(when);
  return Number.isNaN(then) ? '' : duration((now - then) / 1000, trans);
}

export function duration(seconds: number, trans: TranslationBundle): string {
  if (seconds < 60) {
    return trans.__('now');
  }
  if (seconds < 3600) {
    return trans.__('%1 min', Math.floor(seconds / 60));
  }
  if (seconds < 86_400) {
    return trans.__('%1 h', Math.floor(seconds / 3600));
  }
  return trans.__('%1 d', Math.floor(seconds / 86_400));
}

/** A base as people read it: "origin/main (a1b2c3d, 2 d old)". */
export function baseText(base: Base, trans: TranslationBundle): string {
  const sha = base.sha.slice(0, 7);
  const seconds = base.age_seconds;
  return seconds === null || seconds === undefined || seconds < 60
    ? trans.__('%1 (%2)', base.ref, sha)
    : trans.__('%1 (%2, %3 old)', base.ref, sha, duration(seconds, trans));
}

/** The number of files that differ from the commit; `null` while it is not known. */
export function changedFiles(worktree: Worktree): number | null {
  const { changes } = worktree;
  return changes && changes.modified + changes.untracked + changes.conflicted;
}

/** A mark beside a worktree's name: its words, and the sentence that explains it. */
export interface Tag {
  readonly mood: 'calm' | 'good' | 'warn' | 'error';
  readonly text: string;
  readonly title: string;
}

export function worktreeTags(worktree: Worktree, trans: TranslationBundle): Tag[] {
  const tags: Tag[] = [];
  const add = (mood: Tag['mood'], text: string, title: string) => tags.push({ mood, text, title });
  if (worktree.is_main) {
    add('calm', trans.__('main'), trans.__('The main checkout: the folder of the repository itself'));
  }
  if (worktree.state === 'missing') {
    add('error', trans.__('missing'), trans.__('git knows this worktree, but its folder is gone'));
  } else if (worktree.state === 'moved') {
    add('error', trans.__('moved'), trans.__('The link between this folder and its repository is broken'));
  } else if (worktree.state === 'not_a_worktree') {
    add('warn', trans.__('plain folder'), trans.__('A folder among the worktrees that is none'));
  }
  if (worktree.prunable && worktree.state === 'ok') {
    add('warn', trans.__('prunable'), trans.__('git would forget this worktree at its next clean-up'));
  }
  if (worktree.locked) {
    add('warn', trans.__('locked'), worktree.lock_reason || trans.__('Locked, no reason given'));
  }
  if (worktree.operation) {
    add('warn', worktree.operation, trans.__('A %1 is under way', worktree.operation));
  }
  if (worktree.changes?.conflicted) {
    add(
      'error',
      trans.__('conflicts'),
      trans._n('%1 file with conflicts', '%1 files with conflicts', worktree.changes.conflicted)
    );
  }
  if (worktree.detached) {
    add('calm', trans.__('detached'), trans.__('At a commit, on no branch'));
  }
  // A branch without commits of its own is "merged" too, which says nothing.
  const hasWork = !!worktree.base && worktree.base.sha !== worktree.head;
  if (!worktree.is_main && ((worktree.merged === 'yes' && hasWork) || worktree.merged === 'squashed')) {
    const title =
      worktree.merged === 'yes'
        ? trans.__('Its commits are in the base')
        : trans.__('Its changes are in the base, squashed');
    add('good', trans.__('merged'), title);
  }
  return tags;
}

/** Branch, or what stands for it. */
export function worktreeTitle(worktree: Worktree): string {
  return (
    worktree.branch ??
    (worktree.detached && worktree.head ? `${worktree.name} @ ${worktree.head.slice(0, 7)}` : worktree.name)
  );
}

// --- accessible names ----------------------------------------------------------------------------

export function rowName(row: Row, now: number, trans: TranslationBundle): string {
  switch (row.kind) {
    case 'repository':
      return repositoryName(row, trans);
    case 'worktree':
      return worktreeName(row, trans);
    case 'elsewhere':
      return joined([trans.__('Other folders'), sessionCount(row.sessions, trans), urgentWord(row, trans)]);
    case 'session':
      return sessionName(row, now, trans);
    case 'creation': {
      const phase = {
        creating: trans.__('creating'),
        failed: trans.__('failed'),
        warned: trans.__('ready, with a warning')
      };
      return joined([
        trans.__('New worktree session %1', row.creation.request.branch),
        phase[row.creation.phase]
      ]);
    }
    case 'more':
      return trans._n('Show %1 more session', 'Show %1 more sessions', row.hidden);
  }
}

/** What a row that something can be done to is called, without its state. */
export function rowTitle(row: Row): string {
  switch (row.kind) {
    case 'repository':
      return row.repository.name;
    case 'worktree':
      return worktreeTitle(row.worktree);
    case 'session':
      return row.session.title;
    default:
      return '';
  }
}

function repositoryName(row: RepositoryRow, trans: TranslationBundle): string {
  return joined([
    trans.__('Repository %1', row.repository.name),
    instanceWord(row.instance, trans),
    trans._n('%1 worktree', '%1 worktrees', row.worktrees),
    row.busy ? trans.__('%1 busy', row.busy) : '',
    row.needsYou ? trans._n('%1 needs you', '%1 need you', row.needsYou) : ''
  ]);
}

function worktreeName(row: WorktreeRow, trans: TranslationBundle): string {
  const { worktree } = row;
  const files = changedFiles(worktree);
  return joined([
    trans.__('Worktree %1', worktreeTitle(worktree)),
    worktree.is_main ? trans.__('main checkout') : '',
    ...worktreeTags({ ...worktree, is_main: false }, trans).map(tag => tag.text),
    files ? trans._n('%1 changed file', '%1 changed files', files) : '',
    worktree.ahead ? trans.__('%1 ahead', worktree.ahead) : '',
    worktree.behind ? trans.__('%1 behind', worktree.behind) : '',
    sessionCount(row.sessions, trans),
    urgentWord(row, trans)
  ]);
}

function sessionName(row: SessionRow, now: number, trans: TranslationBundle): string {
  const { session } = row;
  return joined([
    trans.__('Session %1', session.title),
    statusWord(session.status, trans),
    age(session.updated, now, trans)
  ]);
}

function sessionCount(count: number, trans: TranslationBundle): string {
  return count ? trans._n('%1 session', '%1 sessions', count) : '';
}

function urgentWord(row: WorktreeRow | ElsewhereRow, trans: TranslationBundle): string {
  return row.status && row.status !== 'idle' ? statusWord(row.status, trans) : '';
}

function joined(parts: string[]): string {
  return parts.filter(part => part).join(', ');
}
