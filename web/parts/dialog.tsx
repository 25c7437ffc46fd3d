// A modal dialog over the page. Escape and a click beside it close it; the focus comes back to where it was.
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
  useEffect(() => {
    const back = document.activeElement;
    box.current!.showModal();
    return () => {
      if (back instanceof HTMLElement) back.focus();
    };
  }, []);
  return (
    <dialog ref={box} class={name} aria-label={title} onClose={onClose}
      onClick={(e) => {
        if (e.target === e.currentTarget) e.currentTarget.close();
      }}>
      <header><h2>{title}</h2><button type="button" aria-label="Close" onClick={() => box.current!.close()}>×</button></header>
      {children}
    </dialog>
  );
}
