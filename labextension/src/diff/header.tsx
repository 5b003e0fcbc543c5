/**
 * The head of the diff tab: what is compared with what, and how much differs.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { refreshIcon } from '@jupyterlab/ui-components';
import { Button, Foreign, IconButton } from '../panel/button';
import { worktreeTitle } from '../panel/words';
import { baseName } from '../state';
import { DiffModel } from './state';
import { againstText, totals } from './words';

/** No git reference and no path of ours is this. */
const OTHER = '\n';

interface Props {
  diff: DiffModel;
  trans: TranslationBundle;
}

export function DiffHeader({
  diff,
  trans,
  children
}: Props & { children?: React.ReactNode }): JSX.Element {
  const { worktree } = diff;
  const title = worktree ? worktreeTitle(worktree) : baseName(diff.path);
  const told = diff.diff?.against;
  const ref = againstText(diff, otherWorktrees(diff), trans);
  return (
    <div className="ocman-DiffHeader">
      <div className="ocman-DiffHeader-line">
        <h2 title={diff.path}>
          <Foreign text={title} /> {trans.__('against')} <Foreign text={ref} />
          {told && <span className="ocman-DiffHeader-sha"> ({told.sha.slice(0, 7)})</span>}
        </h2>
        <IconButton
          icon={refreshIcon}
          label={trans.__('Refresh')}
          busy={diff.isLoading}
          onClick={() => void diff.refresh()}
        />
      </div>
      <div className="ocman-DiffHeader-line">
        <span className="ocman-LineCounts" role="status">
          {diff.diff && diff.files.length > 0 ? totals(diff.files, trans) : ''}
        </span>
        <AgainstChoice diff={diff} trans={trans} />
        {children}
      </div>
    </div>
  );
}

function otherWorktrees(diff: DiffModel) {
  return [...(diff.repository?.worktrees.values() ?? [])].filter(
    ({ path, state }) => path !== diff.path && state === 'ok'
  );
}

function AgainstChoice({ diff, trans }: Props): JSX.Element {
  const [isTyping, setIsTyping] = React.useState(false);
  const [typed, setTyped] = React.useState('');
  const others = otherWorktrees(diff);
  const base = diff.worktree?.base ?? diff.repository?.defaultBase;
  const { against } = diff;
  const isListed = against === 'base' || against === 'HEAD' || others.some(({ path }) => path === against);
  const wanted = typed.trim();
  return (
    <form
      className="ocman-Against"
      onSubmit={event => {
        event.preventDefault();
        if (wanted) {
          diff.against = wanted;
          setIsTyping(false);
        }
      }}
    >
      <select
        className="ocman-Input"
        aria-label={trans.__('Compare with')}
        value={isTyping ? OTHER : against}
        onChange={event => {
          setIsTyping(event.target.value === OTHER);
          if (event.target.value !== OTHER) {
            diff.against = event.target.value;
          }
        }}
      >
        <option value="base">{base ? trans.__('Base: %1', base.ref) : trans.__('Base')}</option>
        <option value="HEAD">{trans.__('Last commit: uncommitted changes only')}</option>
        {!isListed && <option value={against}>{against}</option>}
        {others.length > 0 && (
          <optgroup label={trans.__('Other worktrees')}>
            {others.map(other => (
              <option key={other.path} value={other.path}>
                {worktreeTitle(other)}
              </option>
            ))}
          </optgroup>
        )}
        <option value={OTHER}>{trans.__('Another branch or commit…')}</option>
      </select>
      {isTyping && (
        <>
          <input
            className="ocman-Input"
            autoFocus
            value={typed}
            spellCheck={false}
            placeholder={trans.__('Branch, tag or commit')}
            aria-label={trans.__('Branch, tag or commit to compare with')}
            onChange={event => setTyped(event.target.value)}
            onKeyDown={event => {
              if (event.key === 'Escape') {
                event.stopPropagation();
                setIsTyping(false);
              }
            }}
          />
          <Button mood="accept" blocked={!wanted} onClick={event => event.currentTarget.form?.requestSubmit()}>
            {trans.__('Compare')}
          </Button>
        </>
      )}
    </form>
  );
}
