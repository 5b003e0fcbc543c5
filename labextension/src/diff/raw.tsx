/**
 * A patch that could not be read line by line, as it came.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { visible } from '../asks';

/** Characters that are drawn at most, whatever the number of lines. */
const LONGEST = 50_000;

export function RawPatch({
  text,
  maxLines,
  trans
}: {
  text: string;
  maxLines: number;
  trans: TranslationBundle;
}): JSX.Element {
  const lines = text.split('\n', maxLines + 1);
  const shown = lines.slice(0, maxLines).join('\n').slice(0, LONGEST);
  return (
    <div className="ocman-Patch">
      <pre className="ocman-Patch-raw">{visible(shown)}</pre>
      {shown.length < text.trimEnd().length && (
        <div className="ocman-Patch-more">{trans.__('There is more that is not shown.')}</div>
      )}
    </div>
  );
}
