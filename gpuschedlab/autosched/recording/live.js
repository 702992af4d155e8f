// Ties the button "Go live" of a player to the kernel: it is on while the kernel answers.
export default {
  render({ model }) {
    const PING = 3000, SILENT = 12000, id = model.get("player");
    let heard = 0;
    const player = () => window.gpuschedlabPlayers?.[id];
    const go = (at) => model.send({ kind: "live", at });
    const answered = (message) => {
      if (message.kind !== "pong") return;
      heard = Date.now();
      player()?.listen(go);
    };
    const ask = () => {
      if (heard && Date.now() - heard > SILENT) player()?.listen(null);
      try {
        model.send({ kind: "ping" });
      } catch {
        gone();
      }
    };
    const gone = () => {
      clearInterval(pulse);
      player()?.listen(null);
    };
    const pulse = setInterval(ask, PING);
    model.on("msg:custom", answered);
    model.on("comm:close", gone);
    model.on("comm_live_update", gone);
    ask();
    return () => {
      gone();
      model.off("msg:custom", answered);
      model.off("comm:close", gone);
      model.off("comm_live_update", gone);
    };
  },
};
