/**
 * The dialog before a worktree is removed: what would be lost, and what to do about each.
 */
import * as React from 'react';
import { Dialog, Notification } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Api } from './api';
import { Button, ErrorText, Foreign } from './panel/button';
import { useSignal } from './panel/hooks';
import { worktreeTitle } from './panel/words';
import { LossCode, LossReason, Removed, Worktree } from './records';
import { Decision, Removing, isRescuable, rescueFolder, rescuedTo, sizeText } from './removing';
import { Repository } from './state';
import { LONGEST, STAYS, copyPath } from './toasts';

interface RemovalOptions {
  api: Api;
  repository: Repository;
  worktree: Worktree;
  trans: TranslationBundle;
}

/** Ask about everything that would be lost, and remove the worktree; whether it is gone. */
export async function removeWorktree(options: RemovalOptions): Promise<boolean> {
  const { api, repository, worktree, trans } = options;
  const removing = new Removing({
    api,
    path: worktree.path,
    host: repository.host,
    rescueTo: rescueFolder(repository.root, worktree.name, new Date())
  });
  void removing.look();
  await new RemovalDialog(removing, worktree, trans).launch();
  if (removing.phase !== 'removed') {
    return false;
  }
  tellResult(worktreeTitle(worktree), removing.result!, trans);
  return true;
}

const CANCEL = 0;
const REMOVE = 1;

/** Lab's dialog, which stays while its second button works. */
class RemovalDialog extends Dialog<void> {
  constructor(
    private _removing: Removing,
    worktree: Worktree,
    private _trans: TranslationBundle
  ) {
    super({
      title: _trans.__('Remove worktree %1', worktreeTitle(worktree)),
      body: ReactWidget.create(<RemovalBody removing={_removing} worktree={worktree} trans={_trans} />),
      buttons: [
        Dialog.cancelButton({ label: _trans.__('Cancel') }),
        Dialog.warnButton({ label: _trans.__('Remove'), accept: false })
      ],
      defaultButton: CANCEL
    });
    this.addClass('ocman-Removal');
    // Lab names only those whose body is a text.
    this.node.setAttribute('aria-label', _trans.__('Remove worktree %1', worktreeTitle(worktree)));
    _removing.changed.connect(this._follow, this);
    this._follow();
  }

  override dispose(): void {
    this._removing.changed.disconnect(this._follow, this);
    super.dispose();
  }

  override resolve(index?: number): void {
    if (index === REMOVE && this._removing.phase !== 'removed') {
      void this._removing.remove();
    } else if (this._removing.phase !== 'removing') {
      super.resolve(index);
    }
  }

  override reject(): void {
    // What has begun is waited for: its result is not to be missed.
    if (this._removing.phase !== 'removing') {
      super.reject();
    }
  }

  override handleEvent(event: Event): void {
    const key = event.type === 'keydown' ? (event as KeyboardEvent).key : null;
    if (key === 'Enter' && event.target instanceof HTMLInputElement) {
      // Enter in a field is not "Cancel".
      return;
    }
    if (key === 'Tab') {
      // Lab's dialog knows its first and last field from before there were any, and no disabled button.
      this._focusNext((event as KeyboardEvent).shiftKey ? -1 : 1);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    super.handleEvent(event);
  }

  private _focusNext(by: number): void {
    const fields = [...this.node.querySelectorAll<HTMLElement>('button, input, summary, [tabindex="0"]')].filter(
      field => !field.matches(':disabled') && field.offsetParent !== null
    );
    const at = fields.indexOf(document.activeElement as HTMLElement);
    const next = at < 0 ? (by > 0 ? 0 : fields.length - 1) : (at + by + fields.length) % fields.length;
    fields[next]?.focus();
  }

  private _follow(): void {
    const { phase, isReady } = this._removing;
    const buttons = this.node.querySelectorAll<HTMLButtonElement>('.jp-Dialog-footer button');
    const [cancel, remove] = [...buttons];
    if (remove) {
      const hadFocus = document.activeElement === remove;
      remove.disabled = !isReady;
      remove.querySelector('.jp-Dialog-buttonLabel')!.textContent =
        phase === 'removing' ? this._trans.__('Removing…') : this._trans.__('Remove');
      cancel.disabled = phase === 'removing';
      if (hadFocus && remove.disabled && phase !== 'removing') {
        cancel.focus();
      }
    }
    if (phase === 'removed') {
      super.resolve(REMOVE);
    }
  }
}

interface BodyProps {
  removing: Removing;
  worktree: Worktree;
  trans: TranslationBundle;
}

function RemovalBody({ removing, worktree, trans }: BodyProps): JSX.Element {
  useSignal(removing.changed);
  const { phase, reasons, error } = removing;
  const isBusy = phase === 'removing' || phase === 'removed';
  return (
    <div className="ocman-Removal-body" aria-busy={phase === 'looking' || phase === 'removing'}>
      <p>
        <bdi className="ocman-Removal-path">{removing.path}</bdi>
      </p>
      <div role="status">
        {phase === 'looking' && trans.__('Looking at what would be lost…')}
        {phase === 'removing' &&
          (removing.isRescuing
            ? trans.__('Copying %1, then removing…', sizeText(removing.rescueBytes))
            : trans.__('Removing…'))}
        {phase === 'ready' &&
          (reasons.length
            ? trans._n(
                'One thing would be lost. Say what is to be done with it.',
                '%1 things would be lost. Say for each what is to be done with it.',
                reasons.length
              )
            : trans.__('Nothing would be lost.'))}
      </div>
      {error && <ErrorText error={error} />}
      {phase === 'failed' && <Button onClick={() => void removing.look()}>{trans.__('Retry')}</Button>}
      {error && !!removing.result?.rescued.length && (
        <p>{trans.__('%1 is copied already.', rescuedText(removing.result, trans))}</p>
      )}
      {phase !== 'failed' && reasons.length > 0 && (
        <div className="ocman-Removal-reasons">
          {reasons.map(reason => (
            <ReasonCard
              key={reason.code}
              reason={reason}
              isNew={removing.news.has(reason.code)}
              decision={removing.decision(reason.code)}
              onDecide={decision => removing.decide(reason.code, decision)}
              isBusy={isBusy}
              trans={trans}
            />
          ))}
        </div>
      )}
      {removing.isRescuing && (
        <label className="ocman-Removal-folder">
          <span>{trans.__('Copy %1 to this folder', sizeText(removing.rescueBytes))}</span>
          <input
            className="ocman-Input"
            value={removing.rescueTo}
            disabled={isBusy}
            spellCheck={false}
            onChange={event => (removing.rescueTo = event.target.value)}
          />
        </label>
      )}
      {worktree.branch !== null && phase !== 'failed' && (
        <label className="ocman-Removal-choice">
          <input
            type="checkbox"
            checked={removing.deleteBranch}
            disabled={isBusy}
            onChange={event => void removing.setDeleteBranch(event.target.checked)}
          />
          <span>
            {trans.__('Delete the branch too:')} <bdi>{worktree.branch}</bdi>
          </span>
        </label>
      )}
    </div>
  );
}

/** As many items of a reason are listed before the list is folded. */
const ITEMS_AT_FIRST = 5;
/** More than this are counted, not listed: the page stays quick. */
const ITEMS_AT_MOST = 500;

function ReasonCard(props: {
  reason: LossReason;
  isNew: boolean;
  decision: Decision | null;
  onDecide: (decision: Decision | null) => void;
  isBusy: boolean;
  trans: TranslationBundle;
}): JSX.Element {
  const { reason, isNew, decision, onDecide, isBusy, trans } = props;
  const { code, items, total_bytes: bytes } = reason;
  const title = reasonTitle(code, trans);
  const choice = (value: Decision, text: string) => (
    <label className="ocman-Removal-choice">
      <input
        type="checkbox"
        checked={decision === value}
        disabled={isBusy}
        onChange={event => onDecide(event.target.checked ? value : null)}
      />
      <span>{text}</span>
    </label>
  );
  return (
    <section className={`ocman-Reason${decision ? ' ocman-mod-decided' : ''}`} aria-label={title}>
      <div className="ocman-Reason-title">
        {title}
        {isNew && <span className="ocman-Tag ocman-mod-warn">{trans.__('new')}</span>}
        {bytes > 0 && <span className="ocman-Reason-size">{sizeText(bytes)}</span>}
      </div>
      <p dir="auto">{reason.message}</p>
      <Items items={items} trans={trans} />
      {isRescuable(code) && items.length > 0 && choice('rescue', trans.__('Copy them to a folder first'))}
      {choice('accept', acceptText(code, trans))}
    </section>
  );
}

function Items({ items, trans }: { items: LossReason['items']; trans: TranslationBundle }): JSX.Element {
  const list = (some: LossReason['items'], scrolls: boolean) => (
    <ul className="ocman-Reason-items" tabIndex={scrolls ? 0 : undefined}>
      {some.map(({ path, bytes }, i) => (
        <li key={i}>
          <Foreign text={path} />
          {bytes !== null && <span className="ocman-Reason-size">{sizeText(bytes)}</span>}
        </li>
      ))}
    </ul>
  );
  if (items.length <= ITEMS_AT_FIRST + 1) {
    return items.length ? list(items, false) : <></>;
  }
  const more = items.length - ITEMS_AT_FIRST;
  return (
    <>
      {list(items.slice(0, ITEMS_AT_FIRST), false)}
      <details>
        <summary>{trans._n('%1 more', '%1 more', more)}</summary>
        {list(items.slice(ITEMS_AT_FIRST, ITEMS_AT_MOST), true)}
        {items.length > ITEMS_AT_MOST && <p>{trans.__('and %1 others', items.length - ITEMS_AT_MOST)}</p>}
      </details>
    </>
  );
}

function reasonTitle(code: LossCode, trans: TranslationBundle): string {
  switch (code) {
    case 'uncommitted':
      return trans.__('Changes that are not committed');
    case 'untracked':
      return trans.__('New files that git does not track');
    case 'ignored':
      return trans.__('Files that git ignores');
    case 'unreachable_commits':
      return trans.__('Commits that nothing else holds');
    case 'operation':
      return trans.__('An operation of git is under way');
    case 'locked':
      return trans.__('The worktree is locked');
    case 'busy_session':
      return trans.__('A session is at work in it');
    case 'kernel':
      return trans.__('A kernel runs in it');
    case 'process':
      return trans.__('A process works in it');
    case 'unverified':
      return trans.__('Something could not be looked at');
    default:
      return code;
  }
}

/** What the user says yes to. */
function acceptText(code: LossCode, trans: TranslationBundle): string {
  switch (code) {
    case 'uncommitted':
      return trans.__('Lose these changes');
    case 'untracked':
    case 'ignored':
      return trans.__('Lose these files');
    case 'unreachable_commits':
      return trans.__('Lose these commits');
    case 'operation':
      return trans.__('Break it off and lose it');
    case 'locked':
      return trans.__('Remove it although it is locked');
    case 'busy_session':
      return trans.__('Remove it although a session works in it');
    case 'kernel':
    case 'process':
      return trans.__('Remove it although something runs in it');
    default:
      return trans.__('Remove it although that is not known');
  }
}

function rescuedText({ rescued }: Removed, trans: TranslationBundle): string {
  const bytes = sizeText(rescued.reduce((sum, one) => sum + one.bytes, 0));
  return trans._n('%1 file (%2)', '%1 files (%2)', rescued.length, bytes);
}

function tellResult(name: string, result: Removed, trans: TranslationBundle): void {
  const removed = result.branch_deleted
    ? trans.__('Removed worktree and branch %1.', name)
    : trans.__('Removed worktree %1.', name);
  const folder = rescuedTo(result);
  if (folder === null) {
    Notification.success(removed, { autoClose: 5000 });
    return;
  }
  const copied = trans.__('%1 copied to %2', rescuedText(result, trans), folder);
  // The path is what is needed: Lab cuts off the end of what is long.
  const text = [`${removed} ${copied}`, copied].find(({ length }) => length <= LONGEST) ?? folder;
  Notification.success(text, { autoClose: STAYS, actions: copyPath(folder, trans) });
}
