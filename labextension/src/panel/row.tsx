/**
 * What stands in one row of the tree.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { addIcon, caretDownIcon, caretRightIcon, ellipsesIcon } from '@jupyterlab/ui-components';
import { Problem } from '../actions';
import { branchIcon } from '../icons';
import { Button, ErrorText, Foreign, IconButton } from './button';
import { StatusGlyph } from './glyph';
import { CreationRow, ElsewhereRow, RepositoryRow, Row, SessionRow, WorktreeRow } from './rows';
import { RowActions } from './tree';
import { age, changedFiles, instanceWord, rowTitle, statusWord, worktreeTags, worktreeTitle } from './words';

interface Props<R extends Row = Row> {
  row: R;
  trans: TranslationBundle;
  now: number;
  isLive: boolean;
  /** The row that Tab reaches, and with it its buttons. */
  isActive: boolean;
  /** What was done to it and did not work. */
  problem?: Problem;
  actions: RowActions;
}

/** Drawn again only when something in the row, or its age, is different. */
export const RowView = React.memo(AnyRow, (a, b) => {
  const { row: rowA, ...restA } = a;
  const { row: rowB, ...restB } = b;
  return shallowEqual(restA, restB) && shallowEqual(rowA, rowB);
});

function AnyRow(props: Props): JSX.Element {
  const { row, trans, isActive, problem, actions } = props;
  const hasMenu = row.kind === 'repository' || row.kind === 'worktree' || row.kind === 'session';
  const Caret = row.expanded ? caretDownIcon : caretRightIcon;
  const toggle = (event: React.MouseEvent) => {
    event.stopPropagation();
    actions.toggle(row, !row.expanded);
  };
  return (
    <>
      <span className="ocman-Row-caret" onClick={row.expanded === null ? undefined : toggle}>
        {row.expanded !== null && <Caret.react tag="span" width="16px" height="16px" />}
      </span>
      {content(props)}
      {hasMenu && (
        <IconButton
          icon={ellipsesIcon}
          label={trans.__('Actions for %1', rowTitle(row))}
          aria-haspopup="menu"
          tabIndex={isActive ? 0 : -1}
          onClick={event => actions.openMenu(row, event.currentTarget)}
        />
      )}
      {problem && (
        <span className="ocman-Row-problem">
          <ErrorText error={problem.error} />
          <Button tabIndex={isActive ? 0 : -1} onClick={problem.retry}>
            {trans.__('Retry')}
          </Button>
          <Button tabIndex={isActive ? 0 : -1} onClick={() => actions.dismiss(row)}>
            {trans.__('Dismiss')}
          </Button>
        </span>
      )}
    </>
  );
}

function content(props: Props): JSX.Element {
  const { row } = props;
  switch (row.kind) {
    case 'repository':
      return <RepositoryContent {...props} row={row} />;
    case 'worktree':
      return <WorktreeContent {...props} row={row} />;
    case 'elsewhere':
      return <ElsewhereContent {...props} row={row} />;
    case 'session':
      return <SessionContent {...props} row={row} />;
    case 'creation':
      return <CreationContent {...props} row={row} />;
    case 'more':
      return (
        <span className="ocman-Row-link">
          {props.trans._n('Show %1 more session', 'Show %1 more sessions', row.hidden)}
        </span>
      );
  }
}

function RepositoryContent({ row, trans, isLive, isActive, actions }: Props<RepositoryRow>): JSX.Element {
  const { repository } = row;
  const state = row.instance?.state ?? (row.instance ? 'running' : 'stopped');
  const facts = [
    row.folder ?? '',
    trans._n('%1 worktree', '%1 worktrees', row.worktrees),
    row.busy ? trans.__('%1 busy', row.busy) : ''
  ];
  const note = facts.filter(text => text).join(', ');
  return (
    <>
      <span className="ocman-Row-name" title={repository.root}>
        <bdi>{repository.name}</bdi>
      </span>
      <Foreign className="ocman-Row-note" text={note} />
      <span className={`ocman-Pill ocman-mod-${state}`} title={instanceTitle(row, trans)}>
        {instanceWord(row.instance, trans)}
      </span>
      <IconButton
        className="ocman-mod-first"
        icon={addIcon}
        label={trans.__('New worktree session in %1', repository.name)}
        tabIndex={isActive ? 0 : -1}
        aria-disabled={!isLive}
        onClick={() => isLive && actions.newHere(row)}
      />
    </>
  );
}

function instanceTitle({ instance }: RepositoryRow, trans: TranslationBundle): string {
  if (!instance || instance.state === 'stopped') {
    return trans.__('No OpenCode runs here; the next session starts it');
  }
  const version = instance.opencode_version ?? '';
  return instance.owner === 'user'
    ? trans.__('OpenCode %1, which you started yourself', version)
    : trans.__('OpenCode %1, started by ocman', version);
}

function WorktreeContent({ row, trans }: Props<WorktreeRow>): JSX.Element {
  const { worktree, status } = row;
  const files = changedFiles(worktree);
  const hasNews = status !== null && status !== 'idle';
  return (
    <>
      <branchIcon.react tag="span" className="ocman-Row-icon" width="14px" height="14px" />
      <span className="ocman-Row-name" title={worktree.path}>
        <bdi>{worktreeTitle(worktree)}</bdi>
      </span>
      {worktreeTags(worktree, trans).map(tag => (
        <span key={tag.text} className={`ocman-Tag ocman-mod-${tag.mood}`} title={tag.title}>
          {tag.text}
        </span>
      ))}
      <span className="ocman-Row-space" />
      {!!files && (
        <span className="ocman-Fact" title={changesTitle(row, trans)}>
          ~{files}
        </span>
      )}
      {!!worktree.ahead && (
        <span className="ocman-Fact" title={trans._n('%1 commit ahead', '%1 commits ahead', worktree.ahead)}>
          ↑{worktree.ahead}
        </span>
      )}
      {!!worktree.behind && (
        <span
          className="ocman-Fact"
          title={trans._n('%1 commit behind', '%1 commits behind', worktree.behind)}
        >
          ↓{worktree.behind}
        </span>
      )}
      {hasNews && row.expanded !== true && <StatusGlyph status={status} />}
    </>
  );
}

function changesTitle({ worktree: { changes } }: WorktreeRow, trans: TranslationBundle): string {
  return changes
    ? trans.__(
        '%1 modified, %2 untracked, %3 with conflicts',
        changes.modified,
        changes.untracked,
        changes.conflicted
      )
    : '';
}

function ElsewhereContent({ row, trans }: Props<ElsewhereRow>): JSX.Element {
  return (
    <>
      <span
        className="ocman-Row-name ocman-mod-calm"
        title={trans.__('Sessions whose folder is not one of the worktrees')}
      >
        {trans.__('Other folders')}
      </span>
      <span className="ocman-Row-note">{trans._n('%1 session', '%1 sessions', row.sessions)}</span>
      {row.status && row.status !== 'idle' && !row.expanded && <StatusGlyph status={row.status} />}
    </>
  );
}

function SessionContent({ row, trans, now }: Props<SessionRow>): JSX.Element {
  const { session } = row;
  return (
    <>
      <StatusGlyph status={session.status} />
      <Foreign className="ocman-Row-name" text={session.title} />
      <span className="ocman-Row-space" />
      <span className={`ocman-Status ocman-mod-${session.status}`}>{statusWord(session.status, trans)}</span>
      <span className="ocman-Row-age">{age(session.updated, now, trans)}</span>
    </>
  );
}

function CreationContent({ row, trans, isActive, actions }: Props<CreationRow>): JSX.Element {
  const { creation } = row;
  const tabIndex = isActive ? 0 : -1;
  const again = (
    <Button tabIndex={tabIndex} onClick={() => actions.retry(row)}>
      {trans.__('Retry')}
    </Button>
  );
  const dismiss = (
    <Button tabIndex={tabIndex} onClick={() => actions.dismiss(row)}>
      {trans.__('Dismiss')}
    </Button>
  );
  const { progress, error, warnings } = creation;
  const done = progress?.fraction ? ` ${Math.round(progress.fraction * 100)} %` : '';
  return (
    <span className="ocman-Creation">
      <span className="ocman-Creation-line">
        {creation.phase === 'creating' && <StatusGlyph status="busy" />}
        {creation.phase === 'failed' && <StatusGlyph status="error" />}
        <Foreign className="ocman-Row-name" text={creation.request.branch} />
        <span className="ocman-Row-space" />
        {creation.phase === 'creating' && (
          <span className="ocman-Status ocman-mod-busy">
            {trans.__('Creating…')}
            {done}
          </span>
        )}
        {creation.phase === 'failed' && again}
        {creation.phase !== 'creating' && dismiss}
      </span>
      {creation.phase === 'creating' && progress && (
        <span className="ocman-Creation-text">{progress.message}</span>
      )}
      {error && (
        <span className="ocman-Error" role="alert">
          <span dir="auto">{error.message}</span> <span className="ocman-Error-hint">{error.hint}</span>
        </span>
      )}
      {warnings?.map(warning => (
        <span key={warning.code} className="ocman-Creation-text">
          {warning.message}
        </span>
      ))}
    </span>
  );
}

function shallowEqual(a: object, b: object): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every(name => (a as Record<string, unknown>)[name] === (b as Record<string, unknown>)[name])
  );
}
