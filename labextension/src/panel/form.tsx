/**
 * The form for a new worktree session, with the plan of what would be made.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ApiError } from '../errors';
import { OcmanModel } from '../model';
import { LOCAL, WorktreePlan, WorktreeRequest } from '../records';
import { KnownSession, Repository, State, isWithin, keyOf } from '../state';
import { LostWorktree, currentRepository } from '../subject';
import { branchFor } from './branch';
import { Button, ErrorText, Foreign } from './button';
import { baseText } from './words';

interface Props {
  model: OcmanModel;
  trans: TranslationBundle;
  isLive: boolean;
  /** The key of the repository that is chosen at first. */
  repository: string | null;
  /** A folder whose repository is chosen at first. */
  directory?: string;
  /** What is to be made again. */
  lost?: LostWorktree;
  onClose: () => void;
  /** Open the session with this key. */
  onOpen: (sessionKey: string) => void;
  /** The request is on its way; its row stands in the tree of this repository. */
  onCreate: (repository: string) => void;
}

/** After the last keystroke, in milliseconds. */
const PLAN_AFTER = 250;

const OTHER = '';

export function NewSessionForm(props: Props): JSX.Element {
  const { model, trans, isLive, lost, onClose, onOpen, onCreate } = props;
  const repositories = [...model.state.repositories.values()];
  const [chosen, setChosen] = React.useState(
    () =>
      props.repository ??
      (props.directory === undefined
        ? (currentRepository(model)?.key ?? repositories[0]?.key)
        : repositories.find(one => holds(one, props.directory!))?.key) ??
      OTHER
  );
  const [folder, setFolder] = React.useState(props.directory ?? model.place?.directory ?? '');
  const [name, setName] = React.useState(lost?.branch ?? '');
  const [prompt, setPrompt] = React.useState('');
  const field = React.useRef<HTMLInputElement>(null);
  // Before anything else is done: who asked for the form goes on typing.
  React.useLayoutEffect(() => field.current?.focus(), []);

  const repository = model.state.repositories.get(chosen);
  const directory = repository?.root ?? folder.trim();
  const branch = branchFor(name);
  const plan = usePlan(model, { directory, branch, host: repository?.host });
  const isPlanned = plan !== null && !(plan instanceof ApiError);
  const ready =
    isLive && branch !== '' && directory !== '' && (lost ? isPlanned : !(plan instanceof ApiError));
  /** The folder that was lost comes back, and its session with it. */
  const isAgain =
    lost !== undefined && (isPlanned ? plan.worktree_path === lost.path : branch === lost.branch);
  const heading = lost ? trans.__('Make the worktree again') : trans.__('New worktree session');
  const namesake = isPlanned ? namesakeOf(model.state, repository, plan, name.trim()) : null;

  const create = () => {
    if (!ready) {
      return;
    }
    const request: WorktreeRequest = { directory, branch };
    if (repository && repository.host !== LOCAL) {
      request.host = repository.host;
    }
    if (prompt.trim()) {
      request.prompt = prompt.trim();
    }
    if (branch !== name.trim()) {
      request.title = name.trim();
    } else if (lost && branch === lost.branch) {
      request.title = lost.title;
    }
    if (isAgain && !request.prompt) {
      // The session that was there goes on.
      request.session = 'none';
    }
    const key = repository?.key ?? keyOf(LOCAL, directory);
    void model.creations.create(request, key);
    onCreate(key);
  };

  return (
    <section
      className="ocman-Form"
      role="dialog"
      aria-label={heading}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          onClose();
        }
      }}
    >
      <h2 className="ocman-SectionTitle">{heading}</h2>
      {lost && (
        <p>
          {trans.__('The folder of this session is gone:')} <Foreign text={lost.title} />
          <br />
          {isAgain
            ? trans.__('The session goes on when its worktree is there again.')
            : trans.__('It goes on only where it was: this makes another worktree, with a new session.')}
        </p>
      )}
      {repositories.length > 0 && (
        <label>
          <span>{trans.__('Repository')}</span>
          <select className="ocman-Input" value={chosen} onChange={event => setChosen(event.target.value)}>
            {repositories.map(({ key, name, root }) => (
              <option key={key} value={key} title={root}>
                {repositories.some(other => other.key !== key && other.name === name) ? root : name}
              </option>
            ))}
            <option value={OTHER}>{trans.__('Another folder…')}</option>
          </select>
        </label>
      )}
      {!repository && (
        <label>
          <span>{trans.__('Folder of a repository')}</span>
          <input
            className="ocman-Input"
            value={folder}
            onChange={event => setFolder(event.target.value)}
            spellCheck={false}
          />
        </label>
      )}
      <label>
        <span>{trans.__('Name or task')}</span>
        <input
          ref={field}
          className="ocman-Input"
          value={name}
          placeholder={trans.__('e.g. fix-loader')}
          maxLength={200}
          spellCheck={false}
          onChange={event => setName(event.target.value)}
          onKeyDown={event => event.key === 'Enter' && !event.nativeEvent.isComposing && create()}
        />
      </label>
      <label>
        <span>{trans.__('First prompt (optional)')}</span>
        <textarea
          className="ocman-Input"
          rows={2}
          value={prompt}
          onChange={event => setPrompt(event.target.value)}
          onKeyDown={event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && create()}
        />
      </label>
      <div className="ocman-Plan" aria-live="polite">
        {branch && <PlanText plan={plan} trans={trans} />}
        {namesake && (
          <div>
            {trans.__('There is a session of this name in it already.')}{' '}
            <Button onClick={() => onOpen(keyOf(namesake.host, namesake.id))}>
              {trans.__('Open it')}
            </Button>
          </div>
        )}
      </div>
      <div className="ocman-Form-buttons">
        <Button onClick={onClose}>{trans.__('Cancel')}</Button>
        <Button mood="accept" blocked={!ready} onClick={create}>
          {!isPlanned || !plan.reused
            ? isAgain
              ? trans.__('Make again')
              : trans.__('Create')
            : prompt.trim()
              ? trans.__('New session')
              : trans.__('Open session')}
        </Button>
      </div>
    </section>
  );
}

function holds(repository: Repository, directory: string): boolean {
  const paths = [repository.root, ...repository.worktrees.keys()];
  return repository.host === LOCAL && paths.some(path => isWithin(directory, path));
}

/** The newest session that a worktree has already under the name that a new one would get. */
function namesakeOf(
  state: State,
  repository: Repository | undefined,
  plan: WorktreePlan,
  name: string
): KnownSession | null {
  const found = [...state.sessions.values()].filter(
    ({ host, place, directory, title, parent_id }) =>
      host === (repository?.host ?? LOCAL) &&
      (place ?? directory) === plan.worktree_path &&
      title === name &&
      parent_id === null
  );
  return plan.reused ? (found.sort((a, b) => (a.updated < b.updated ? 1 : -1))[0] ?? null) : null;
}

/** What the server would do, or why not; `null` until it said so. */
function usePlan(
  model: OcmanModel,
  { directory, branch, host }: WorktreeRequest
): WorktreePlan | ApiError | null {
  const [plan, setPlan] = React.useState<{ of: string; result: WorktreePlan | ApiError } | null>(null);
  const question = `${host}\n${directory}\n${branch}`;
  React.useEffect(() => {
    if (!branch || !directory) {
      return;
    }
    let isLast = true;
    const timer = setTimeout(() => {
      const request: WorktreeRequest =
        host && host !== LOCAL ? { directory, branch, host } : { directory, branch };
      model.plan(request).then(
        result => isLast && setPlan({ of: question, result }),
        reason => isLast && setPlan({ of: question, result: ApiError.from(reason) })
      );
    }, PLAN_AFTER);
    return () => {
      isLast = false;
      clearTimeout(timer);
    };
  }, [model, question]);
  return plan?.of === question ? plan.result : null;
}

function PlanText({
  plan,
  trans
}: {
  plan: WorktreePlan | ApiError | null;
  trans: TranslationBundle;
}): JSX.Element {
  if (plan === null) {
    return <span className="ocman-Plan-wait">{trans.__('Looking…')}</span>;
  }
  if (plan instanceof ApiError) {
    return <ErrorText error={plan} />;
  }
  const facts: [string, React.ReactNode][] = [
    [
      trans.__('Branch'),
      <>
        <bdi>{plan.branch}</bdi> <em>{plan.branch_existed ? trans.__('exists') : trans.__('new')}</em>
      </>
    ]
  ];
  if (plan.base && !plan.branch_existed) {
    facts.push([trans.__('From'), <bdi>{baseText(plan.base, trans)}</bdi>]);
  }
  facts.push([
    trans.__('Folder'),
    <>
      <bdi title={plan.worktree_path}>{plan.worktree_path}</bdi>{' '}
      {plan.reused && <em>{trans.__('is there already')}</em>}
    </>
  ]);
  if (plan.carry?.length) {
    facts.push([trans.__('Carried'), plan.carry.map(({ path }) => path).join(', ')]);
  }
  if (plan.setup?.length) {
    facts.push([trans.__('Set-up'), plan.setup.join('; ')]);
  }
  return (
    <>
      <dl className="ocman-Facts">
        {facts.map(([name, value]) => (
          <React.Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </React.Fragment>
        ))}
      </dl>
      {plan.warnings?.map((warning, index) => (
        <div key={index} className="ocman-Warning">
          {warning.message}
        </div>
      ))}
    </>
  );
}
