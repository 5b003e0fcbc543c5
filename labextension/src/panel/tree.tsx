/**
 * The tree of repositories, worktrees and sessions, and its keyboard.
 *
 * Only the rows in sight are in the page; the one with the focus always is.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { Problem } from '../actions';
import { RowView } from './row';
import { Row } from './rows';
import { pieces, sightOf } from './window';
import { rowName, rowTitle } from './words';

interface Props {
  rows: readonly Row[];
  /** The key of the row that is looked at elsewhere: in a tab, or in the details. */
  selected: string | null;
  /** What did not work, by the key of its row. */
  problems: ReadonlyMap<string, Problem>;
  trans: TranslationBundle;
  now: number;
  isLive: boolean;
  actions: RowActions;
}

/** What can be done from a row. */
export interface RowActions {
  toggle(row: Row, open: boolean): void;
  /** Enter, or a click. */
  activate(row: Row): void;
  newHere(row: Row): void;
  retry(row: Row): void;
  dismiss(row: Row): void;
  /** The row that commands are about from now on. */
  aim(row: Row | null): void;
  /** Ask for the menu of the row that this element is, or is in. */
  openMenu(row: Row, element: Element): void;
  /** The menu of this row was asked for. */
  onMenu(row: Row): void;
}

const ROW_HEIGHT = 24;

/** Letters that come within this time belong together, in milliseconds. */
const ONE_WORD = 1000;

export function Tree(props: Props): JSX.Element {
  const { rows, selected, problems, trans, now, isLive, actions } = props;
  const root = React.useRef<HTMLDivElement>(null);
  const [active, setActive] = React.useState<string | null>(null);
  const at = rows.findIndex(row => row.key === active);
  const lastAt = React.useRef(0);

  // The row that had the focus can go away while agents work: its neighbour takes over.
  const index = at >= 0 ? at : Math.min(lastAt.current, rows.length - 1);
  const selectedAt = rows.findIndex(row => row.key === selected);
  const hadFocus = React.useRef(false);
  const wanted = React.useRef<number | null>(null);
  React.useLayoutEffect(() => {
    lastAt.current = Math.max(index, 0);
    if (wanted.current !== null) {
      focusRow(root.current, wanted.current);
      wanted.current = null;
    } else if (hadFocus.current && document.activeElement === document.body) {
      focusRow(root.current, index);
    }
  });
  const target = rows[index] as Row | undefined;
  React.useEffect(() => {
    actions.aim(target ?? null);
  }, [actions, target]);

  // The details take room from the tree; the row that they are of stays in sight.
  React.useEffect(() => {
    rowElement(root.current, selectedAt)?.scrollIntoView({ block: 'nearest' });
  }, [selected]);

  const drawn = useDrawn(root, rows, problems, new Set([index, selectedAt]));

  const moveTo = (index: number) => {
    if (index >= 0 && index < rows.length) {
      setActive(rows[index].key);
      if (rowElement(root.current, index)) {
        focusRow(root.current, index);
      } else {
        wanted.current = index;
      }
    }
  };

  useTypeAhead(root, rows, moveTo);

  const onKeyDown = (event: React.KeyboardEvent) => {
    // The row that has the focus now, which may not be drawn as the active one yet.
    const index = indexOf(event.target, event);
    const row = rows[index] as Row | undefined;
    const element = event.target as Element;
    if (!row) {
      return;
    }
    switch (event.key) {
      case 'ArrowDown':
        moveTo(index + 1);
        break;
      case 'ArrowUp':
        moveTo(index - 1);
        break;
      case 'Home':
        moveTo(0);
        break;
      case 'End':
        moveTo(rows.length - 1);
        break;
      case 'ArrowRight':
        row.expanded === false ? actions.toggle(row, true) : row.expanded && moveTo(index + 1);
        break;
      case 'ArrowLeft':
        row.expanded ? actions.toggle(row, false) : moveTo(rows.findIndex(other => other.key === row.parent));
        break;
      case 'Enter':
      case ' ':
        actions.activate(row);
        break;
      case 'ContextMenu':
        actions.openMenu(row, element);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      ref={root}
      className="ocman-Tree"
      role="tree"
      aria-label={trans.__('Projects, worktrees and sessions')}
      onKeyDown={onKeyDown}
      onFocus={() => (hadFocus.current = true)}
      onBlur={event => {
        const left = event.target;
        setTimeout(() => {
          // A row that went away took the focus with it; that is not the user leaving.
          hadFocus.current = !left.isConnected || !!root.current?.contains(document.activeElement);
        });
      }}
    >
      {drawn.map((piece, nth) => {
        if (piece.kind === 'gap') {
          return <div key={`gap ${nth}`} role="none" style={{ height: piece.height }} />;
        }
        const i = piece.index;
        const row = rows[i];
        const problem = problems.get(row.key);
        return (
          <div
            key={row.key}
            className={`ocman-Row ocman-mod-${row.kind}${problem ? ' ocman-mod-problem' : ''}`}
            role="treeitem"
            aria-level={row.level}
            aria-expanded={row.expanded ?? undefined}
            aria-posinset={row.position}
            aria-setsize={row.siblings}
            aria-selected={row.key === selected}
            aria-label={rowName(row, now, trans)}
            tabIndex={i === index ? 0 : -1}
            data-index={i}
            {...marks(row)}
            style={{ paddingLeft: (row.level - 1) * 14 + 4 }}
            onFocus={() => {
              setActive(row.key);
              // A command may follow before this is drawn.
              actions.aim(row);
            }}
            onContextMenu={() => actions.onMenu(row)}
            onClick={event => {
              if (!(event.target as Element).closest('button, .ocman-Error')) {
                actions.activate(row);
              }
            }}
          >
            <RowView
              row={row}
              trans={trans}
              now={now}
              isLive={isLive}
              isActive={i === index}
              problem={problem}
              actions={actions}
            />
          </div>
        );
      })}
    </div>
  );
}

/** What the selectors of menus and shortcuts can tell rows apart by. */
function marks(row: Row): Record<string, string | undefined> {
  switch (row.kind) {
    case 'repository':
      return { 'data-host': row.repository.host, 'data-path': row.repository.root };
    case 'worktree':
      return {
        'data-host': row.repository.host,
        'data-path': row.worktree.path,
        'data-state': row.worktree.state,
        'data-main': row.worktree.is_main ? '' : undefined
      };
    case 'session':
      return { 'data-host': row.session.host, 'data-id': row.session.id, 'data-status': row.session.status };
    default:
      return {};
  }
}

/** The pieces to draw now; drawn again when other rows come into sight. */
function useDrawn(
  root: React.RefObject<HTMLElement>,
  rows: readonly Row[],
  problems: ReadonlyMap<string, Problem>,
  pinned: ReadonlySet<number>
) {
  const [sight, setSight] = React.useState(() => sightOf(0, 800));
  React.useLayoutEffect(() => {
    const box = root.current?.parentElement;
    if (!box) {
      return;
    }
    const look = () => {
      const next = sightOf(box.scrollTop, box.clientHeight);
      setSight(old => (old.top === next.top && old.bottom === next.bottom ? old : next));
    };
    look();
    box.addEventListener('scroll', look, { passive: true });
    const resized = new ResizeObserver(look);
    resized.observe(box);
    return () => {
      box.removeEventListener('scroll', look);
      resized.disconnect();
    };
  }, []);

  // Rows with more than a line are few; how high they are is measured.
  const heights = React.useRef(new Map<string, number>());
  const tall = new Map<number, number>();
  rows.forEach(({ kind, key }, i) => {
    if (kind === 'creation' || problems.has(key)) {
      tall.set(i, heights.current.get(key) ?? ROW_HEIGHT);
    }
  });
  React.useLayoutEffect(() => {
    heights.current = new Map(
      [...tall.keys()].map(i => [rows[i].key, rowElement(root.current, i)?.offsetHeight ?? ROW_HEIGHT])
    );
  });
  return pieces({ count: rows.length, rowHeight: ROW_HEIGHT, tall, pinned, ...sight });
}

/** Letters move to the next row whose name begins with what was typed in one go. */
function useTypeAhead(
  root: React.RefObject<HTMLElement>,
  rows: readonly Row[],
  moveTo: (index: number) => void
): void {
  const latest = React.useRef({ rows, moveTo });
  latest.current = { rows, moveTo };
  React.useEffect(() => {
    let typed = '';
    let timer: ReturnType<typeof setTimeout> | undefined;
    const onKeyDown = (event: KeyboardEvent) => {
      const tree = root.current;
      const index = tree?.contains(event.target as Node) ? indexOf(event.target!, event) : -1;
      if (index < 0 || event.key.length !== 1 || event.defaultPrevented) {
        return;
      }
      clearTimeout(timer);
      // In the middle of a word a letter is no shortcut: their selectors leave this out.
      tree!.setAttribute('data-typing', '');
      timer = setTimeout(() => {
        typed = '';
        tree!.removeAttribute('data-typing');
      }, ONE_WORD);
      typed += event.key.toLocaleLowerCase();
      const { rows, moveTo } = latest.current;
      const from = typed.length > 1 ? index : index + 1;
      const order = [...rows.keys()].map(i => (i + from) % rows.length);
      moveTo(order.find(i => rowTitle(rows[i]).toLocaleLowerCase().startsWith(typed)) ?? -1);
      event.preventDefault();
    };
    // The application's shortcuts come first; what is one of them does not come here.
    window.addEventListener('keydown', onKeyDown);
    return () => {
      clearTimeout(timer);
      window.removeEventListener('keydown', onKeyDown);
    };
  }, []);
}

/** The index of the row that is this target; -1 when it is none, or a key came with others. */
function indexOf(
  target: EventTarget,
  { ctrlKey, altKey, metaKey }: { ctrlKey: boolean; altKey: boolean; metaKey: boolean }
): number {
  const index = (target as HTMLElement).dataset?.index;
  return index === undefined || ctrlKey || altKey || metaKey ? -1 : Number(index);
}

function rowElement(root: HTMLElement | null, index: number): HTMLElement | null {
  return index < 0 ? null : (root?.querySelector<HTMLElement>(`[data-index="${index}"]`) ?? null);
}

function focusRow(root: HTMLElement | null, index: number): void {
  const element = rowElement(root, index);
  element?.focus({ preventScroll: true });
  element?.scrollIntoView({ block: 'nearest' });
}
