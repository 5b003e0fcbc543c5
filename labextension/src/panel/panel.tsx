/**
 * The whole side panel, drawn from the model and from what the panel remembers.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { addIcon, refreshIcon } from '@jupyterlab/ui-components';
import { Actions } from '../actions';
import { OcmanModel } from '../model';
import { Preferences } from '../preferences';
import { currentRepository, subjectOf } from '../subject';
import { Button, IconButton } from './button';
import { SessionDetails } from './details';
import { NewSessionForm } from './form';
import { useNow, useSettled, useSignal } from './hooks';
import { NeedsYou } from './needs';
import { Notices } from './notices';
import { Row, Tree as Rows, buildTree, sessionKey } from './rows';
import { RowActions, Tree } from './tree';
import { PanelView } from './view';

interface Props {
  model: OcmanModel;
  view: PanelView;
  actions: Actions;
  preferences: Preferences;
  trans: TranslationBundle;
  /** Open the session with this key. */
  onOpen: (sessionKey: string) => void;
}

/** Ages are told anew so often, in milliseconds. */
const AGES = 30_000;

export function Panel(props: Props): JSX.Element {
  const { model, view, actions: work, preferences, trans, onOpen } = props;
  useSignal(model.changed);
  useSignal(view.changed);
  useSignal(work.changed);
  useSignal(preferences.changed);
  const now = useNow(AGES);
  const panel = React.useRef<HTMLDivElement>(null);
  const isLive = model.connection.phase === 'live';
  const here = currentRepository(model)?.key ?? null;
  const { toggled, unfolded, filter, activeOnly } = view;
  const tree = React.useMemo(
    () => buildTree(model.state, model.creations.all, { toggled, unfolded, filter, activeOnly, here }),
    [model.state, model.creations.all, toggled, unfolded, filter, activeOnly, here]
  );

  // The slow parts are asked for when a human can see them.
  React.useEffect(() => {
    if (view.isVisible && isLive) {
      for (const row of tree.rows) {
        if (row.kind === 'repository' && row.expanded) {
          model.loadDetails(row.repository.key);
        }
      }
    }
  }, [tree, view.isVisible, isLive]);

  const focusTree = () => panel.current?.querySelector<HTMLElement>('.ocman-Tree [tabindex="0"]')?.focus();
  const actions = React.useMemo(() => rowActions(model, view, work, onOpen), [model, view, work, onOpen]);
  const selected = view.current ?? view.session;

  return (
    <div ref={panel} className={`ocman-Panel-content${model.isLoaded && !isLive ? ' ocman-mod-stale' : ''}`}>
      <div className="ocman-Header">
        <h1>{trans.__('ocman')}</h1>
        <button
          type="button"
          className="ocman-NewButton"
          aria-label={trans.__('New worktree session')}
          title={trans.__('New worktree session')}
          aria-disabled={!isLive}
          onClick={() => isLive && (view.form = { repository: null })}
        >
          <addIcon.react tag="span" className="ocman-Icon" width="14px" height="14px" />
          {trans.__('New')}
        </button>
        <IconButton
          icon={refreshIcon}
          label={trans.__('Refresh')}
          busy={model.isRefreshing}
          onClick={() => void model.refresh(shownRepositories(tree))}
        />
      </div>
      <Notices model={model} trans={trans} />
      <NeedsYou
        {...{ model, trans, now, isLive }}
        settleTime={preferences.chosen.settleTime}
        onShow={onOpen}
      />
      {view.form && (
        <NewSessionForm
          key={`${view.form.repository} ${view.form.directory} ${view.form.lost?.path}`}
          model={model}
          trans={trans}
          isLive={isLive}
          repository={view.form.repository}
          directory={view.form.directory}
          lost={view.form.lost}
          onOpen={key => {
            view.form = null;
            onOpen(key);
          }}
          onClose={() => {
            view.form = null;
            focusTree();
          }}
          onCreate={repository => {
            view.form = null;
            view.toggle(repository, true);
            focusTree();
          }}
        />
      )}
      {model.state.repositories.size > 0 && <Filter view={view} trans={trans} hidden={tree.hidden} />}
      <div className="ocman-Scroll">
        {tree.rows.length > 0 && (
          <Tree
            rows={tree.rows}
            selected={selected && `session\n${selected}`}
            problems={work.problems}
            {...{ trans, now, isLive, actions }}
          />
        )}
        <Empty model={model} view={view} trans={trans} tree={tree} />
      </div>
      {view.session && (
        <SessionDetails
          model={model}
          sessionKey={view.session}
          {...{ trans, now, isLive }}
          onClose={() => {
            view.session = null;
            focusTree();
          }}
        />
      )}
      <Footer model={model} trans={trans} />
    </div>
  );
}

function rowActions(
  model: OcmanModel,
  view: PanelView,
  work: Actions,
  onOpen: (sessionKey: string) => void
): RowActions {
  return {
    toggle: (row, open) => view.toggle(row.key, open),
    activate: row => {
      switch (row.kind) {
        case 'session':
          onOpen(sessionKey(row));
          break;
        case 'more':
          view.unfold(row.parent!);
          break;
        default:
          if (row.expanded !== null) {
            view.toggle(row.key, !row.expanded);
          }
      }
    },
    newHere: row => (view.form = { repository: repositoryOf(row) }),
    retry: row => row.kind === 'creation' && void model.creations.retry(row.creation.id),
    dismiss: row =>
      row.kind === 'creation' ? model.creations.dismiss(row.creation.id) : work.dismiss(row.key),
    aim: row => (view.target = row && subjectOf(row)),
    onMenu: row => (view.menuTarget = subjectOf(row)),
    openMenu: (_, element) => openMenu(element)
  };
}

/** Lab's own context menu for what stands at the element. */
export function openMenu(element: Element): void {
  const { left, bottom } = element.getBoundingClientRect();
  const isRow = element.matches('.ocman-Row');
  element.dispatchEvent(
    new MouseEvent('contextmenu', {
      bubbles: true,
      cancelable: true,
      button: 2,
      clientX: left + (isRow ? 24 : 0),
      clientY: bottom,
      view: window
    })
  );
}

function repositoryOf(row: Row): string | null {
  return row.kind === 'repository' || row.kind === 'worktree' ? row.repository.key : null;
}

function shownRepositories(tree: Rows): string[] {
  return tree.rows.flatMap(row => (row.kind === 'repository' && row.expanded ? [row.repository.key] : []));
}

function Filter({
  view,
  trans,
  hidden
}: {
  view: PanelView;
  trans: TranslationBundle;
  hidden: number;
}): JSX.Element {
  const choice = (activeOnly: boolean, text: string, title: string) => (
    <button
      type="button"
      aria-pressed={view.activeOnly === activeOnly}
      title={title}
      onClick={() => (view.activeOnly = activeOnly)}
    >
      {text}
    </button>
  );
  return (
    <div className="ocman-Filter">
      <input
        type="search"
        className="ocman-Input"
        value={view.filter}
        placeholder={trans.__('Filter…')}
        aria-label={trans.__('Filter worktrees and sessions')}
        spellCheck={false}
        onChange={event => (view.filter = event.target.value)}
        onKeyDown={event => {
          if (event.key === 'Escape' && view.filter) {
            event.stopPropagation();
            view.filter = '';
          }
        }}
      />
      <div className="ocman-Choice" role="group" aria-label={trans.__('Which sessions')}>
        {choice(false, trans.__('All'), trans.__('All sessions'))}
        {choice(true, trans.__('Active'), trans.__('Sessions that are busy, failed, or need you'))}
      </div>
      {hidden > 0 && (
        <div className="ocman-Filter-hidden" role="status">
          {trans.__('%1 hidden', hidden)}
          <button
            type="button"
            className="ocman-LinkButton"
            onClick={() => {
              view.filter = '';
              view.activeOnly = false;
            }}
          >
            {trans.__('Show all')}
          </button>
        </div>
      )}
    </div>
  );
}

/** What to do next when there is little or nothing to see. */
function Empty({
  model,
  view,
  trans,
  tree
}: Pick<Props, 'model' | 'view' | 'trans'> & { tree: Rows }): JSX.Element | null {
  const late = useSettled(model, 300);
  const { place, state } = model;
  if (!model.isLoaded) {
    const isWaiting = model.connection.phase === 'connecting';
    return isWaiting && late ? <div className="ocman-Empty">{trans.__('Connecting…')}</div> : null;
  }
  if (state.repositories.size === 0) {
    if (place && !place.error && !place.repository) {
      return late ? <div className="ocman-Empty">{trans.__('Looking for a repository…')}</div> : null;
    }
    return (
      <div className="ocman-Empty">
        <p>{place?.error ? <bdi>{place.error.message}</bdi> : trans.__('No repository is in use yet.')}</p>
        <p>{place?.error?.hint}</p>
        <p>{trans.__('Or open a folder of a git repository in the file browser: it appears here.')}</p>
      </div>
    );
  }
  if (tree.rows.length === 0) {
    return <div className="ocman-Empty">{trans.__('Nothing matches the filter.')}</div>;
  }
  const isBare =
    tree.hidden === 0 &&
    tree.rows.every(row => row.kind === 'repository' || (row.kind === 'worktree' && row.worktree.is_main));
  return isBare ? (
    <div className="ocman-Empty">
      <p>
        {trans.__(
          'No sessions yet. A worktree session gives an idea a branch and a folder of its own, with an agent in it.'
        )}
      </p>
      <Button mood="accept" onClick={() => (view.form = { repository: null })}>
        {trans.__('New worktree session')}
      </Button>
    </div>
  ) : null;
}

function Footer({ model, trans }: { model: OcmanModel; trans: TranslationBundle }): JSX.Element {
  const { phase } = model.connection;
  const word = {
    connecting: trans.__('connecting'),
    live: trans.__('live'),
    reconnecting: trans.__('reconnecting')
  }[phase];
  const running = [...model.state.instances.values()].filter(({ state }) => !state || state === 'running');
  const versions = [...new Set(running.map(({ opencode_version }) => opencode_version ?? '?'))];
  const installed = model.capabilities?.opencode?.version;
  const facts = versions.length
    ? trans.__('OpenCode %1', versions.join(', '))
    : installed
      ? trans.__('OpenCode %1, not running', installed)
      : '';
  return (
    <div className="ocman-Footer">
      <span className={`ocman-Connection ocman-mod-${phase}`} role="status">
        {word}
      </span>
      <span className="ocman-Footer-facts">{facts}</span>
    </div>
  );
}
