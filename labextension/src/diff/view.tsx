/**
 * The whole diff tab: its head, the files to go to, and their changes.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { Button, ErrorText } from '../panel/button';
import { useSettled, useSignal } from '../panel/hooks';
import { FileDiff } from '../records';
import { FileActions, FileSection } from './file';
import { matchingFiles } from './files';
import { DiffHeader } from './header';
import { useIsWide } from './hooks';
import { show } from './keys';
import { FileList } from './list';
import { DiffModel } from './state';
import { againstText } from './words';

/** From this width on old and new can stand beside each other, in pixels. */
const SPLIT_WIDTH = 760;

/** Files with more changed lines are closed at first. */
const LARGE = 1_500;

/** Lines that are drawn without waiting for what can be seen. */
const FIRST_SCREEN = 200;

interface Props {
  diff: DiffModel;
  open: (path: string, line: number | null) => void;
  trans: TranslationBundle;
}

export function DiffView({ diff, open, trans }: Props): JSX.Element {
  useSignal(diff.changed);
  const root = React.useRef<HTMLDivElement>(null);
  const scroll = React.useRef<HTMLDivElement>(null);
  const isWide = useIsWide(root, SPLIT_WIDTH);
  const [wantsSplit, setWantsSplit] = React.useState(false);
  const [filter, setFilter] = React.useState('');
  const [folds, setFolds] = React.useState<ReadonlyMap<string, boolean>>(new Map());
  const [current, setCurrent] = React.useState<string | null>(null);
  const files = React.useMemo(() => matchingFiles(diff.files, filter), [diff.files, filter]);

  const actions = React.useMemo<FileActions>(
    () => ({
      fold: (file, isOpen) => setFolds(before => new Map(before).set(file.path, isOpen)),
      view: (file, isViewed) => {
        // What was seen is closed, and open again when it changes.
        setFolds(before => {
          const after = new Map(before);
          after.delete(file.path);
          return after;
        });
        diff.setViewed(file, isViewed);
      },
      open: (file, line) => open(`${diff.path.replace(/\/+$/, '')}/${file.path}`, line)
    }),
    [diff, open]
  );
  const go = (file: FileDiff) => {
    setCurrent(file.path);
    if (!diff.isViewed(file)) {
      actions.fold(file, true);
    }
    const section = [...(scroll.current?.querySelectorAll<HTMLElement>('[data-ocman-file]') ?? [])].find(
      ({ dataset }) => dataset.ocmanFile === file.path
    );
    if (section) {
      show(section);
    }
  };

  let drawn = 0;
  return (
    <div ref={root} className="ocman-Diff-content">
      <DiffHeader diff={diff} trans={trans}>
        {isWide && files.length > 0 && (
          <div className="ocman-Choice" role="group" aria-label={trans.__('How lines are shown')}>
            <button type="button" aria-pressed={!wantsSplit} onClick={() => setWantsSplit(false)}>
              {trans.__('Unified')}
            </button>
            <button type="button" aria-pressed={wantsSplit} onClick={() => setWantsSplit(true)}>
              {trans.__('Side by side')}
            </button>
          </div>
        )}
      </DiffHeader>
      <Notices diff={diff} trans={trans} />
      <div className={`ocman-Diff-body${diff.isGone || diff.error ? ' ocman-mod-stale' : ''}`}>
        {diff.files.length > 0 && (
          <FileList
            files={files}
            hidden={diff.files.length - files.length}
            filter={filter}
            onFilter={setFilter}
            current={current}
            isViewed={file => diff.isViewed(file)}
            onGo={go}
            trans={trans}
          />
        )}
        <div
          ref={scroll}
          className="ocman-Diff-files"
          data-ocman-scroll
          onFocus={({ target }) => {
            const file = target.closest<HTMLElement>('[data-ocman-file]')?.dataset.ocmanFile;
            if (file !== undefined) {
              setCurrent(file);
            }
          }}
        >
          {files.map(file => {
            const isViewed = diff.isViewed(file);
            const lines = (file.additions ?? 0) + (file.deletions ?? 0);
            const isOpen = folds.get(file.path) ?? (!isViewed && lines <= LARGE);
            const atOnce = isOpen && drawn < FIRST_SCREEN;
            drawn += isOpen ? lines + 10 : 1;
            return (
              <FileSection
                key={file.path}
                isSplit={wantsSplit && isWide}
                {...{ file, isOpen, isViewed, atOnce, actions, trans }}
              />
            );
          })}
          {diff.files.length > 0 && files.length === 0 && (
            <p className="ocman-Empty">{trans.__('No file goes with the filter.')}</p>
          )}
        </div>
      </div>
    </div>
  );
}

/** What stands between the reader and the differences, each with what to do about it. */
function Notices({ diff, trans }: { diff: DiffModel; trans: TranslationBundle }): JSX.Element {
  const late = useSettled(diff, 300);
  const retry = <Button onClick={() => void diff.refresh()}>{trans.__('Retry')}</Button>;
  if (diff.isGone) {
    return (
      <div className="ocman-DiffNotice" role="alert">
        <span>
          {diff.diff
            ? trans.__('This worktree is gone. What you see is how it was when it was last read.')
            : trans.__('This worktree is gone.')}
        </span>
        {retry}
      </div>
    );
  }
  if (diff.error) {
    return (
      <div className="ocman-DiffNotice">
        <ErrorText error={diff.error} />
        {retry}
      </div>
    );
  }
  if (!diff.diff) {
    return (
      <div className="ocman-Empty" role="status">
        {late && trans.__('Reading the differences…')}
      </div>
    );
  }
  const ref = againstText(diff, [], trans);
  return (
    <>
      {diff.files.length === 0 && (
        <p className="ocman-Empty" role="status">
          {trans.__('Nothing differs from %1.', ref)}
        </p>
      )}
      {diff.diff.truncated && (
        <div className="ocman-DiffNotice" role="status">
          {trans.__('There is more that differs: not all of it is shown.')}
        </div>
      )}
    </>
  );
}
