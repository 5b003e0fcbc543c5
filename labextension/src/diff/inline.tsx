/**
 * A small patch inside something else: an edit in a conversation.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { countRows, firstRows, groupsOf } from './groups';
import { parsePatch } from './patch';
import { RawPatch } from './raw';
import { HunkTable } from './table';

/** Longer patches are cut before they are read. */
const LONGEST = 200_000;

interface Props {
  /** Unified. */
  patch: string;
  maxLines?: number;
  trans: TranslationBundle;
}

/** At most `maxLines` lines of a patch, and how many more there are. */
export const InlinePatch = React.memo(function InlinePatch({
  patch,
  maxLines = 20,
  trans
}: Props): JSX.Element {
  const files = React.useMemo(() => parsePatch(patch.slice(0, LONGEST)), [patch]);
  const isReadable =
    files.some(({ hunks }) => hunks.length > 0) &&
    // Cut in the middle, the last one is never complete.
    files.every((file, i) => file.isComplete || (patch.length > LONGEST && i === files.length - 1));
  if (!isReadable) {
    return <RawPatch text={patch} maxLines={maxLines} trans={trans} />;
  }
  let left = maxLines;
  let hidden = 0;
  const shown: JSX.Element[] = [];
  files.forEach((file, i) => {
    const groups = groupsOf(file.hunks, false);
    const lines = countRows(groups);
    const take = Math.min(lines, left);
    hidden += lines - take;
    left -= take;
    if (take > 0) {
      const path = file.newPath ?? file.oldPath ?? '';
      shown.push(
        <React.Fragment key={i}>
          {files.length > 1 && <bdi className="ocman-Patch-path">{path}</bdi>}
          <HunkTable groups={firstRows(groups, take)} label={trans.__('Changes of %1', path)} trans={trans} />
        </React.Fragment>
      );
    }
  });
  return (
    <div className="ocman-Patch">
      {shown}
      {hidden > 0 && (
        <div className="ocman-Patch-more">{trans._n('%1 more line', '%1 more lines', hidden)}</div>
      )}
    </div>
  );
});
