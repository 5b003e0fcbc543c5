/**
 * How the diff tab says things.
 */
import { TranslationBundle } from '@jupyterlab/translation';
import { FileDiff, Worktree } from '../records';
import { DiffModel } from './state';

export function fileStatus(status: FileDiff['status'], trans: TranslationBundle): string {
  switch (status) {
    case 'added':
      return trans.__('added');
    case 'deleted':
      return trans.__('deleted');
    case 'renamed':
      return trans.__('renamed');
    case 'untracked':
      return trans.__('untracked');
    case 'conflicted':
      return trans.__('conflicted');
    default:
      return trans.__('modified');
  }
}

/** "+12 −3", or nothing when it is not known. */
export function lineCounts(file: Pick<FileDiff, 'additions' | 'deletions'>): string {
  const { additions, deletions } = file;
  return additions === null && deletions === null ? '' : `+${additions ?? 0} −${deletions ?? 0}`;
}

/** Of all files: "+12 −3 in 5 files". */
export function totals(files: readonly FileDiff[], trans: TranslationBundle): string {
  const sum = (name: 'additions' | 'deletions') => files.reduce((all, file) => all + (file[name] ?? 0), 0);
  const counts = lineCounts({ additions: sum('additions'), deletions: sum('deletions') });
  return trans._n('%2 in %1 file', '%2 in %1 files', files.length, counts);
}

/** A file and what became of it, for ears. */
export function fileName(file: FileDiff, trans: TranslationBundle): string {
  const parts = [file.path, fileStatus(file.status, trans)];
  if (file.old_path && file.old_path !== file.path) {
    parts.push(trans.__('was %1', file.old_path));
  }
  if (file.binary) {
    parts.push(trans.__('binary'));
  } else if (file.additions !== null || file.deletions !== null) {
    parts.push(trans.__('%1 lines added', file.additions ?? 0));
    parts.push(trans.__('%1 removed', file.deletions ?? 0));
  }
  return parts.join(', ');
}

/** What is compared with, as people call it. */
export function againstText(
  diff: Pick<DiffModel, 'against' | 'diff' | 'worktree'>,
  others: readonly Worktree[],
  trans: TranslationBundle
): string {
  const { against } = diff;
  if (against === 'HEAD') {
    return trans.__('the last commit');
  }
  const told = diff.diff?.against?.ref;
  const other = others.find(({ path }) => path === against);
  if (other) {
    return other.branch ?? other.name;
  }
  return told ?? (against === 'base' ? (diff.worktree?.base?.ref ?? trans.__('its base')) : against);
}
