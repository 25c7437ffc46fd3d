// A modal dialog over the page. Escape and a click outside of it close it; the focus comes back to where it was.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}

/** Dialog shows its children until onClose takes it out of the page. */
export function Dialog({ title, onClose, children, class: name }: DialogProps): JSX.Element {
  const box = useRef<HTMLDialogElement>(null);
  const began = useRef(false); // the press that is under way began outside of it; one that selects text may end there
  useEffect(() => {
    const back = document.activeElement;
    box.current!.showModal();
    return () => {
      if (back instanceof HTMLElement) back.focus();
    };
  }, []);
  return (
    <dialog ref={box} class={name} aria-label={title} onClose={onClose}
      onPointerDown={(e) => (began.current = isBeside(e))}
      onClick={(e) => {
        if (began.current && isBeside(e)) e.currentTarget.close();
      }}>
      <header><h2>{title}</h2><button type="button" aria-label="Close" onClick={() => box.current!.close()}>×</button></header>
      {children}
    </dialog>
  );
}

/** isBeside reports whether a pointer is on what is behind a dialog. */
function isBeside(e: MouseEvent & { currentTarget: HTMLDialogElement }): boolean {
  const r = e.currentTarget.getBoundingClientRect();
  return e.target === e.currentTarget && (e.clientX < r.left || e.clientX > r.right || e.clientY < r.top || e.clientY > r.bottom);
}
