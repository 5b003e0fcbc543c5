/**
 * The conversation, from the earliest entry that was read to the newest.
 */
import * as React from 'react';
import { Button } from '../panel/button';
import { Conversation } from './conversation';
import { Entry, entriesOf } from './entries';
import { EntryView } from './message';
import { ScrollKeeper } from './scroll';
import { Surroundings } from './surroundings';
import { FILE } from './untrusted';
import { fileAndLine, fullPath } from './words';

/** So near to the top the earlier messages are read, in pixels. */
const NEAR_TOP = 200;

interface Props {
  conversation: Conversation;
  surroundings: Surroundings;
  title: string;
  /** What stands after the newest entry. */
  children?: React.ReactNode;
}

export function Transcript(props: Props): JSX.Element {
  const { conversation, surroundings, title, children } = props;
  const { trans } = surroundings;
  const entries = useEntries(conversation);
  const scroller = React.useRef<HTMLDivElement>(null);
  const content = React.useRef<HTMLDivElement>(null);
  const list = React.useRef<HTMLDivElement>(null);
  const keeper = React.useRef<ScrollKeeper | null>(null);
  // The newest entry that was seen, once the reader is elsewhere.
  const [seen, setSeen] = React.useState<string | null>(null);
  const newest = React.useRef<string | null>(null);
  newest.current = newestOf(entries);

  const look = React.useCallback(() => {
    const isAtEnd = keeper.current?.isAtEnd ?? true;
    conversation.isFollowed = isAtEnd;
    setSeen(before => (isAtEnd ? null : (before ?? newest.current)));
  }, [conversation]);
  React.useLayoutEffect(() => {
    const top = scroller.current!;
    const kept = new ScrollKeeper(top, content.current!, list.current!, () => {
      look();
      if (top.scrollTop < NEAR_TOP && !conversation.actionError) {
        void conversation.loadEarlier();
      }
    });
    keeper.current = kept;
    return () => kept.dispose();
  }, [conversation, look]);
  const toEnd = () => {
    keeper.current?.toEnd();
    look();
    scroller.current?.focus({ preventScroll: true });
  };
  const openFile = (target: EventTarget) => {
    const link = (target as Element).closest(`[${FILE}]`)?.getAttribute(FILE);
    if (link) {
      const { path, line } = fileAndLine(link);
      surroundings.onFile(fullPath(path, surroundings.directory), line);
    }
    return !!link;
  };
  const onClickCapture = ({ target }: React.MouseEvent) => {
    const entry = (target as Element).closest<HTMLElement>('[data-ocman-entry]');
    if (entry && (target as Element).closest('[aria-expanded]')) {
      keeper.current?.hold(entry);
    }
  };

  const fresh = seen === null ? 0 : countAfter(entries, seen);
  return (
    <div className="ocman-Transcript">
      <div
        ref={scroller}
        className="ocman-Transcript-scroll"
        role="log"
        aria-live="off"
        aria-label={trans.__('Conversation %1', title)}
        aria-busy={conversation.isBusy}
        tabIndex={0}
        onKeyDown={event => event.key === 'Enter' && openFile(event.target) && event.preventDefault()}
        onClickCapture={onClickCapture}
        onClick={event => void openFile(event.target)}
      >
        <div ref={content}>
          {conversation.hasEarlier && (
            <div className="ocman-Transcript-earlier">
              <Button blocked={conversation.isLoadingEarlier} onClick={() => void conversation.loadEarlier()}>
                {conversation.isLoadingEarlier ? trans.__('Loading…') : trans.__('Load earlier')}
              </Button>
            </div>
          )}
          <div ref={list} className="ocman-Entries">
            {entries.map(entry => (
              <EntryView key={entry.key} entry={entry} surroundings={surroundings} />
            ))}
          </div>
          {children}
        </div>
      </div>
      {seen !== null && (
        <button type="button" className="ocman-Jump" onClick={toEnd}>
          {fresh ? trans.__('%1 new, jump', fresh) : trans.__('Jump to the end')}
        </button>
      )}
    </div>
  );
}

/** Give the focus to the last entry, or to the conversation when it is empty. */
export function focusTranscript(root: Element): void {
  const entries = root.querySelectorAll<HTMLElement>('[data-ocman-entry]');
  const target = entries[entries.length - 1] ?? root.querySelector<HTMLElement>('.ocman-Transcript-scroll');
  target?.focus();
}

function useEntries(conversation: Conversation): readonly Entry[] {
  const before = React.useRef<readonly Entry[]>([]);
  const { messages, queued, isBusy } = conversation;
  return React.useMemo(() => {
    before.current = entriesOf(messages, { queued, isBusy }, before.current);
    return before.current;
  }, [messages, queued, isBusy]);
}

/** The key of the last entry that says something; what only closes a turn comes and goes. */
function newestOf(entries: readonly Entry[]): string | null {
  let at = entries.length - 1;
  while (at > 0 && entries[at].kind === 'turn') {
    at -= 1;
  }
  return entries[at]?.key ?? null;
}

/** How many entries came after the one with this key. */
function countAfter(entries: readonly Entry[], key: string): number {
  const at = entries.findIndex(entry => entry.key === key);
  return at < 0 ? 0 : entries.slice(at + 1).filter(({ kind }) => kind !== 'turn').length;
}

/** Go to the next entry in `root`, or the one before; whether there is one. */
export function stepEntry(root: Element, by: 1 | -1): boolean {
  const entries = [...root.querySelectorAll<HTMLElement>('[data-ocman-entry]')];
  const from = document.activeElement?.closest<HTMLElement>('[data-ocman-entry]') ?? null;
  const at = from ? entries.indexOf(from) + by : entries.length - 1;
  const next = entries[at];
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: 'nearest' });
  return next !== undefined;
}
