/**
 * The suggestions for what is being written, above the composer's text.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ErrorText } from '../panel/button';
import { Completion } from './completion';

interface Props {
  /** The id of the list; that of a suggestion is `optionId(id, index)`. */
  id: string;
  completion: Completion;
  onAccept: (index: number) => void;
  trans: TranslationBundle;
}

export function optionId(id: string, index: number): string {
  return `${id}-${index}`;
}

export function Suggestions({ id, completion, onAccept, trans }: Props): JSX.Element | null {
  const { token, items, active, error, isOpen } = completion;
  const list = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    list.current?.querySelector('[data-active]')?.scrollIntoView({ block: 'nearest' });
  }, [active, items]);
  if (!token) {
    return null;
  }
  const label = token.kind === 'file' ? trans.__('Files') : trans.__('Commands');
  const mark = token.kind === 'file' ? '' : '/';
  return (
    <>
      {(isOpen || error) && (
        <div className="ocman-Popup ocman-Suggestions">
          {error && <ErrorText error={error} />}
          {isOpen && (
            <div ref={list} id={id} className="ocman-Popup-list" role="listbox" aria-label={label}>
              {items.map(({ value, detail }, i) => (
                <div
                  key={value}
                  id={optionId(id, i)}
                  className="ocman-Popup-item"
                  role="option"
                  aria-selected={i === active}
                  data-active={i === active || undefined}
                  title={detail ?? value}
                  // The focus stays in the text.
                  onMouseDown={event => event.preventDefault()}
                  onClick={() => onAccept(i)}
                >
                  <bdi className="ocman-Popup-name">
                    {mark}
                    {value}
                  </bdi>
                  {detail && <bdi className="ocman-Popup-detail">{detail}</bdi>}
                </div>
              ))}
            </div>
          )}
        </div>
      )}
      <div className="ocman-Hidden" role="status">
        {isOpen ? trans._n('%1 suggestion', '%1 suggestions', items.length) : ''}
      </div>
    </>
  );
}
