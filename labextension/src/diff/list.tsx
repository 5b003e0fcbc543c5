/**
 * The changed files to go to: a list or a tree, with a filter.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { FileDiff } from '../records';
import { FileRow, FolderRow, fileRows } from './files';
import { fileName, fileStatus, lineCounts } from './words';

interface Props {
  /** Those that go with the filter, sorted. */
  files: readonly FileDiff[];
  hidden: number;
  filter: string;
  onFilter: (filter: string) => void;
  current: string | null;
  isViewed: (file: FileDiff) => boolean;
  onGo: (file: FileDiff) => void;
  trans: TranslationBundle;
}

export function FileList(props: Props): JSX.Element {
  const { files, hidden, filter, onFilter, current, isViewed, onGo, trans } = props;
  const [isTree, setIsTree] = React.useState(true);
  const [closed, setClosed] = React.useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = React.useState<string | null>(null);
  const list = React.useRef<HTMLUListElement>(null);
  const rows = React.useMemo(() => fileRows(files, { isTree, closed }), [files, isTree, closed]);
  const tabbable = [active, current].find(key => rows.some(row => row.key === key)) ?? rows[0]?.key;

  const toggle = (row: FolderRow) => {
    const next = new Set(closed);
    if (!next.delete(row.key)) {
      next.add(row.key);
    }
    setClosed(next);
  };
  const move = (event: React.KeyboardEvent) => {
    const buttons = [...(list.current?.querySelectorAll<HTMLElement>('button') ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    const row = rows[at];
    if (to !== undefined && at >= 0) {
      event.preventDefault();
      buttons[to]?.focus();
    } else if (row?.kind === 'folder' && event.key === (row.isOpen ? 'ArrowLeft' : 'ArrowRight')) {
      event.preventDefault();
      toggle(row);
    }
  };
  const button = (key: string) => ({
    type: 'button' as const,
    className: 'ocman-FileRow',
    tabIndex: key === tabbable ? 0 : -1,
    onFocus: () => setActive(key)
  });
  const folder = (row: FolderRow) => {
    const Caret = row.isOpen ? caretDownIcon : caretRightIcon;
    return (
      <button
        {...button(row.key)}
        aria-expanded={row.isOpen}
        aria-label={trans._n('Folder %2, %1 file', 'Folder %2, %1 files', row.files, row.name)}
        onClick={() => toggle(row)}
      >
        <Caret.react tag="span" className="ocman-Icon" width="16px" height="16px" />
        <bdi className="ocman-FileRow-name">{row.name}</bdi>
      </button>
    );
  };
  const leaf = ({ key, file, name }: FileRow) => {
    const seen = isViewed(file);
    return (
      <button
        {...button(key)}
        aria-current={key === current}
        aria-label={fileName(file, trans) + (seen ? `, ${trans.__('viewed')}` : '')}
        title={file.path}
        onClick={() => onGo(file)}
      >
        <bdi className={`ocman-FileRow-name${seen ? ' ocman-mod-viewed' : ''}`}>{name}</bdi>
        {seen && <span aria-hidden="true">✓</span>}
        <span className={`ocman-FileStatus ocman-mod-${file.status}`}>{fileStatus(file.status, trans)}</span>
        <span className="ocman-LineCounts">{lineCounts(file)}</span>
      </button>
    );
  };

  return (
    <nav className="ocman-FileList" aria-label={trans.__('Changed files')}>
      <div className="ocman-FileList-tools">
        <input
          type="search"
          className="ocman-Input"
          value={filter}
          placeholder={trans.__('Filter…')}
          aria-label={trans.__('Filter files')}
          spellCheck={false}
          onChange={event => onFilter(event.target.value)}
          onKeyDown={event => {
            if (event.key === 'Escape' && filter) {
              event.stopPropagation();
              onFilter('');
            }
          }}
        />
        <div className="ocman-Choice" role="group" aria-label={trans.__('How files are listed')}>
          <button type="button" aria-pressed={isTree} onClick={() => setIsTree(true)}>
            {trans.__('Tree')}
          </button>
          <button type="button" aria-pressed={!isTree} onClick={() => setIsTree(false)}>
            {trans.__('List')}
          </button>
        </div>
      </div>
      {hidden > 0 && (
        <div className="ocman-Filter-hidden" role="status">
          {trans.__('%1 hidden', hidden)}
          <button type="button" className="ocman-LinkButton" onClick={() => onFilter('')}>
            {trans.__('Show all')}
          </button>
        </div>
      )}
      <ul ref={list} className="ocman-FileList-rows" onKeyDown={move}>
        {rows.map(row => (
          <li key={row.key} style={{ '--ocman-depth': row.depth } as React.CSSProperties}>
            {row.kind === 'folder' ? folder(row) : leaf(row)}
          </li>
        ))}
      </ul>
    </nav>
  );
}
