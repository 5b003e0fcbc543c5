/**
 * One changed file: what became of it, and its lines.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { Button, Foreign } from '../panel/button';
import { FileDiff } from '../records';
import { GROUP, countRows, firstRows, groupsOf } from './groups';
import { useGrowing, useWasNear } from './hooks';
import { NotebookChanges } from './notebook';
import { cellChanges } from './notebook_diff';
import { FilePatch, Hunk, parsePatch } from './patch';
import { RawPatch } from './raw';
import { HunkTable } from './table';
import { fileName, fileStatus, lineCounts } from './words';

/** Lines of a file that are drawn at first, and how many more each time that they are asked for. */
const FIRST = 1_000;
const MORE = 2_000;

/** Height of a line, for room that is kept before lines are drawn, in pixels. */
const LINE = 20;

export interface FileActions {
  fold(file: FileDiff, isOpen: boolean): void;
  view(file: FileDiff, isViewed: boolean): void;
  /** `line` counts from one. */
  open(file: FileDiff, line: number | null): void;
}

interface Props {
  file: FileDiff;
  isOpen: boolean;
  isViewed: boolean;
  isSplit: boolean;
  /** Its lines are drawn although it was never near to what can be seen. */
  atOnce: boolean;
  actions: FileActions;
  trans: TranslationBundle;
}

export const FileSection = React.memo(function FileSection(props: Props): JSX.Element {
  const { file, isOpen, isViewed, actions, trans } = props;
  const section = React.useRef<HTMLElement>(null);
  const wasNear = useWasNear(section, props.atOnce);
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  const counts = lineCounts(file);
  return (
    <section
      ref={section}
      className={`ocman-File${isViewed ? ' ocman-mod-viewed' : ''}`}
      aria-label={fileName(file, trans)}
      data-ocman-file={file.path}
    >
      <header className="ocman-File-head">
        <h3>
          <button
            type="button"
            className="ocman-File-name"
            aria-expanded={isOpen}
            title={file.path}
            onClick={() => actions.fold(file, !isOpen)}
          >
            <Caret.react tag="span" className="ocman-Icon" width="16px" height="16px" />
            <span className="ocman-File-path">
              {file.old_path && file.old_path !== file.path && (
                <>
                  <bdi>{file.old_path}</bdi> {'→'}{' '}
                </>
              )}
              <bdi>{file.path}</bdi>
            </span>
          </button>
        </h3>
        <span className={`ocman-FileStatus ocman-mod-${file.status}`}>{fileStatus(file.status, trans)}</span>
        {counts && <span className="ocman-LineCounts">{counts}</span>}
        <label className="ocman-File-viewed">
          <input
            type="checkbox"
            checked={isViewed}
            onChange={event => actions.view(file, event.target.checked)}
            aria-label={trans.__('Viewed %1', file.path)}
          />
          {trans.__('Viewed')}
        </label>
        {file.status !== 'deleted' && !isFolder(file) && (
          <Button
            onClick={() => actions.open(file, firstLine(file))}
            aria-label={trans.__('Open file %1', file.path)}
          >
            {trans.__('Open file')}
          </Button>
        )}
      </header>
      {isOpen &&
        (wasNear ? (
          <Changes {...props} />
        ) : (
          <div className="ocman-File-room" style={{ height: roomFor(file) }} />
        ))}
    </section>
  );
});

function Changes({ file, isSplit, trans }: Props): JSX.Element {
  const cells = cellChanges(file);
  const [asText, setAsText] = React.useState(false);
  if (!cells) {
    return <Lines {...{ file, isSplit, trans }} />;
  }
  return (
    <>
      {file.patch !== null && (
        <div className="ocman-File-choice">
          <button type="button" className="ocman-LinkButton" onClick={() => setAsText(!asText)}>
            {asText ? trans.__('Show cells') : trans.__('Show the file’s text')}
          </button>
        </div>
      )}
      {asText ? <Lines {...{ file, isSplit, trans }} /> : <NotebookChanges cells={cells} trans={trans} />}
    </>
  );
}

function Lines({
  file,
  isSplit,
  trans
}: {
  file: FileDiff;
  isSplit: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const [limit, setLimit] = React.useState(FIRST);
  const patches = patchesOf(file);
  const isTwo = isSplit && !patches.some(({ isCombined }) => isCombined);
  const groups = React.useMemo(() => groupsOf(hunksOf(file), isTwo), [file, isTwo]);
  const total = countRows(groups);
  const drawn = useGrowing(Math.min(limit, total), GROUP);
  const shown = React.useMemo(() => firstRows(groups, drawn), [groups, drawn]);
  const note = (text: string) => <p className="ocman-File-note">{text}</p>;
  if (file.binary) {
    return note(trans.__('A binary file: its content is not shown.'));
  }
  if (isFolder(file)) {
    return note(trans.__('A repository of its own: git does not look into it.'));
  }
  if (file.patch === null) {
    return note(trans.__('Too large to be shown here.'));
  }
  if (patches.some(patch => !patch.isComplete) || (total === 0 && !isUnderstood(patches))) {
    return file.patch.trim() ? (
      <RawPatch text={file.patch} maxLines={FIRST} trans={trans} />
    ) : (
      note(trans.__('No line differs.'))
    );
  }
  return (
    <>
      {patches.map((patch, i) => (
        <ModeNote key={i} patch={patch} trans={trans} />
      ))}
      {total === 0 ? (
        note(trans.__('No line differs.'))
      ) : (
        <HunkTable groups={shown} isSplit={isTwo} label={trans.__('Lines of %1', file.path)} trans={trans} />
      )}
      {total > limit && drawn === limit && (
        <div className="ocman-File-more">
          <Button onClick={() => setLimit(limit + MORE)}>
            {trans._n('Show more (%1 line left)', 'Show more (%1 lines left)', total - limit)}
          </Button>
        </div>
      )}
    </>
  );
}

function ModeNote({ patch, trans }: { patch: FilePatch; trans: TranslationBundle }): JSX.Element | null {
  const { oldMode, newMode } = patch;
  return oldMode && newMode && oldMode !== newMode ? (
    <p className="ocman-File-note">
      {trans.__('Mode')} <Foreign text={`${oldMode} → ${newMode}`} />
    </p>
  ) : null;
}

function isFolder({ path }: FileDiff): boolean {
  return path.endsWith('/');
}

const parsed = new WeakMap<FileDiff, readonly FilePatch[]>();

function patchesOf(file: FileDiff): readonly FilePatch[] {
  let found = parsed.get(file);
  if (!found) {
    found = parsePatch(file.patch ?? '');
    parsed.set(file, found);
  }
  return found;
}

const parsedHunks = new WeakMap<FileDiff, readonly Hunk[]>();

/** The same array each time: tables are drawn again when it is another. */
function hunksOf(file: FileDiff): readonly Hunk[] {
  let found = parsedHunks.get(file);
  if (!found) {
    found = patchesOf(file).flatMap(patch => patch.hunks);
    parsedHunks.set(file, found);
  }
  return found;
}

/** A patch may say all without a hunk: a new name, another mode, an empty file. */
function isUnderstood(all: readonly FilePatch[]): boolean {
  return all.some(({ status, newMode }) => status !== 'modified' || newMode !== null);
}

/** The first line of the new file that the patch shows as changed. */
function firstLine(file: FileDiff): number | null {
  for (const { lines, newStart } of hunksOf(file)) {
    const changed = lines.findIndex(({ kind }) => kind !== 'context');
    const line = lines.slice(Math.max(changed, 0)).find(candidate => candidate.new !== null);
    return line?.new ?? newStart;
  }
  return null;
}

/** About the height that its lines will have. */
function roomFor(file: FileDiff): number {
  const lines = (file.additions ?? 0) + (file.deletions ?? 0) + 8;
  return LINE * (file.patch === null ? 2 : Math.min(lines, FIRST));
}
