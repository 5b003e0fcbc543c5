/**
 * Whether a document holds something that a person made and that is not on disk.
 */
import { DocumentRegistry } from '@jupyterlab/docregistry';
import { ISignal } from '@lumino/signaling';

/** What notebooks' models have beside those of other documents. */
interface Metadata {
  readonly metadataChanged: ISignal<unknown, { key: string }>;
  getMetadata(key: string): unknown;
  setMetadata(key: string, value: unknown): void;
}

/** What a notebook is told by its kernel: a notebook that lacks it is dirty as soon as it is open. */
const OF_KERNEL = ['kernelspec', 'language_info'];

/**
 * Follows the changes of one document from when it is first seen.
 *
 * A notebook that is dirty only because its kernel wrote its own name into it holds nothing of a person.
 */
export class Unsaved {
  constructor(private _context: DocumentRegistry.Context) {
    const { model } = _context;
    this._isTouched = model.dirty;
    if (!hasMetadata(model)) {
      this._isTouched = true;
      return;
    }
    this._metadata = model;
    let isOfKernel = false;
    // Its model tells of changed metadata, and then that something has changed.
    model.metadataChanged.connect((_, { key }) => {
      isOfKernel = OF_KERNEL.includes(key);
    });
    model.contentChanged.connect(() => {
      this._isTouched = this._isTouched || !isOfKernel;
      isOfKernel = false;
    });
    const begin = () => {
      this._isTouched = false;
    };
    if (!_context.isReady) {
      void _context.ready.then(begin, () => undefined);
    }
    // Saved, or read again; a new name tells the same, but saves nothing.
    _context.fileChanged.connect(() => model.dirty || begin());
  }

  get isThere(): boolean {
    return this._context.model.dirty && this._isTouched;
  }

  /** Read the document again by `read`; what its kernel told it stays. */
  async replace(read: () => Promise<void>): Promise<void> {
    const told = OF_KERNEL.map(key => [key, this._metadata?.getMetadata(key)] as const);
    await read();
    if (this._context.isDisposed) {
      return;
    }
    const { model, sessionContext } = this._context;
    model.dirty = false;
    if (this._metadata) {
      this._isTouched = false;
      // Without a kernel the disk knows better.
      for (const [key, value] of sessionContext.session?.kernel ? told : []) {
        if (value !== undefined && JSON.stringify(value) !== JSON.stringify(this._metadata.getMetadata(key))) {
          this._metadata.setMetadata(key, value);
        }
      }
    }
  }

  private _isTouched: boolean;
  private readonly _metadata: Metadata | null = null;
}

function hasMetadata(model: object): model is Metadata & DocumentRegistry.IModel {
  return 'metadataChanged' in model && 'setMetadata' in model;
}
