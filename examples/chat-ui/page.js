// A chat whose messages can be edited and whose versions can be switched, of assistant-ui. Its history is a session of a
// coppice service: after a reload, in another tab or on another machine the same branch is shown.
import { AssistantRuntimeProvider, useLocalRuntime } from "@assistant-ui/core/react"; // @assistant-ui/react has them too
import { CoppiceHistory } from "coppice-chat";
import { createElement as h, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";

const id = new URL(location.href).searchParams.get("chat") ?? "first";
const history = new CoppiceHistory(location.origin, `chat-${id}`);
const textOf = ({ content }) => content.map((part) => part.text ?? "").join("");

/** The model. This one repeats what was said; in its place is the request to a model of yours. */
const model = {
  async *run({ messages }) {
    yield { content: [{ type: "text", text: `You said: ${textOf(messages.at(-1))}` }] };
  },
};

/** A text of the user, new or edited. */
function Form({ label, text, send }) {
  const submit = (event) => {
    event.preventDefault();
    send(new FormData(event.target).get("text"));
    event.target.reset();
  };
  return h("form", { onSubmit: submit }, h("textarea", { name: "text", "aria-label": label, defaultValue: text }), h("button", null, "Send"));
}

function Message({ thread, message }) {
  const [editing, edit] = useState(false);
  const at = thread.getMessageById(message.id), { branchNumber, branchCount } = at.getState();
  const to = (position) => () => {
    at.switchToBranch({ position });
    void history.show(thread.export().headId); // assistant-ui does not report it
  };
  const send = (text) => {
    at.composer.beginEdit();
    at.composer.setText(text);
    at.composer.send();
    edit(false);
  };
  if (editing) return h("li", null, h(Form, { label: "Edit the message", text: textOf(message), send }));
  return h("li", { "data-role": message.role, "data-id": message.id }, h("p", null, textOf(message)),
    message.role === "user" && h("button", { onClick: () => edit(true) }, "Edit"),
    branchCount > 1 && h("span", null,
      h("button", { onClick: to("previous"), "aria-label": "Previous version" }, "‹"),
      ` ${branchNumber}/${branchCount} `,
      h("button", { onClick: to("next"), "aria-label": "Next version" }, "›")));
}

function Thread({ thread }) {
  const { messages, isLoading } = useSyncExternalStore((changed) => thread.subscribe(changed), () => thread.getState());
  if (isLoading) return h("p", null, "Loading");
  return [
    h("ol", { key: "messages" }, messages.map((message) => h(Message, { key: message.id, thread, message }))),
    h(Form, { key: "new", label: "Say something", text: "", send: (text) => thread.append(text) }),
  ];
}

function Chat() {
  const runtime = useLocalRuntime(model, { adapters: { history } });
  return h(AssistantRuntimeProvider, { runtime }, h(Thread, { thread: runtime.thread }));
}

createRoot(document.getElementById("chat")).render(h(Chat));
