/**
 * The tree of repositories, worktrees and sessions, and its keyboard.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { RowView } from './row';
import { Row } from './rows';
import { rowName } from './words';

interface Props {
  rows: readonly Row[];
  /** The key of the row whose details are shown. */
  selected: string | null;
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
}

export function Tree({ rows, selected, trans, now, isLive, actions }: Props): JSX.Element {
  const root = React.useRef<HTMLDivElement>(null);
  const [active, setActive] = React.useState<string | null>(null);
  const at = rows.findIndex(row => row.key === active);
  const lastAt = React.useRef(0);
  const typed = React.useRef({ text: '', time: 0 });

  // The row that had the focus can go away while agents work: its neighbour takes over.
  const index = at >= 0 ? at : Math.min(lastAt.current, rows.length - 1);
  const hadFocus = React.useRef(false);
  React.useLayoutEffect(() => {
    lastAt.current = Math.max(index, 0);
    if (hadFocus.current && document.activeElement === document.body) {
      focusRow(root.current, index);
    }
  });

  // The details take room from the tree; the row that they are of stays in sight.
  React.useEffect(() => {
    rowElement(
      root.current,
      rows.findIndex(row => row.key === selected)
    )?.scrollIntoView({ block: 'nearest' });
  }, [selected]);

  const moveTo = (index: number) => {
    if (index >= 0 && index < rows.length) {
      setActive(rows[index].key);
      focusRow(root.current, index);
    }
  };

  const onKeyDown = (event: React.KeyboardEvent) => {
    const row = rows[index];
    if (
      !row ||
      event.target !== rowElement(root.current, index) ||
      event.ctrlKey ||
      event.altKey ||
      event.metaKey
    ) {
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
      default:
        if (event.key.length !== 1) {
          return;
        }
        moveTo(typeAhead(event.key));
    }
    event.preventDefault();
    event.stopPropagation();
  };

  /** The next row whose name begins with what was typed in one go. */
  const typeAhead = (key: string): number => {
    const time = Date.now();
    const text = (time - typed.current.time < 700 ? typed.current.text : '') + key.toLocaleLowerCase();
    typed.current = { text, time };
    const from = text.length > 1 ? index : index + 1;
    const order = [...rows.keys()].map(i => (i + from) % rows.length);
    return order.find(i => plainName(rows[i]).toLocaleLowerCase().startsWith(text)) ?? -1;
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
      {rows.map((row, i) => (
        <div
          key={row.key}
          className={`ocman-Row ocman-mod-${row.kind}`}
          role="treeitem"
          aria-level={row.level}
          aria-expanded={row.expanded ?? undefined}
          aria-posinset={row.position}
          aria-setsize={row.siblings}
          aria-selected={row.key === selected}
          aria-label={rowName(row, now, trans)}
          tabIndex={i === index ? 0 : -1}
          style={{ paddingLeft: (row.level - 1) * 14 + 4 }}
          onFocus={() => setActive(row.key)}
          onClick={event => {
            if (!(event.target as Element).closest('button')) {
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
            actions={actions}
          />
        </div>
      ))}
    </div>
  );
}

function rowElement(root: HTMLElement | null, index: number): HTMLElement | undefined {
  return root?.children[index] as HTMLElement | undefined;
}

function focusRow(root: HTMLElement | null, index: number): void {
  const element = rowElement(root, index);
  element?.focus({ preventScroll: true });
  element?.scrollIntoView({ block: 'nearest' });
}

function plainName(row: Row): string {
  switch (row.kind) {
    case 'repository':
      return row.repository.name;
    case 'worktree':
      return row.worktree.branch ?? row.worktree.name;
    case 'session':
      return row.session.title;
    default:
      return '';
  }
}
