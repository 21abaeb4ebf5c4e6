package appserver

import (
	"context"
	"slices"

	"github.com/fermata-agent/fermata/internal/jsonrpc"
	"github.com/fermata-agent/fermata/internal/surface/appserver/wire"
)

// Schema describes everything that is answered and sent in JSON Schema.
func Schema() map[string]any { return jsonrpc.Schema((&conn{}).methods()) }

// methods is the table of everything that is answered, and sent.
func (c *conn) methods() []jsonrpc.Method {
	initialize := jsonrpc.Handle("initialize", c.initialize)
	initialize.First = true
	return slices.Concat([]jsonrpc.Method{
		initialize,
		jsonrpc.Listen("initialized", func(context.Context, wire.None) {}),
	}, c.threadMethods(), c.turnMethods(), c.queueMethods(), c.localMethods(), sent())
}

func (c *conn) threadMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		handle(c, "thread/start", c.threadStart),
		handle(c, "thread/resume", c.threadResume),
		handle(c, "thread/fork", c.threadFork),
		handle(c, "thread/read", c.threadRead),
		handle(c, "thread/list", c.threadList),
		handle(c, "thread/search", c.threadSearch),
		handle(c, "thread/loaded/list", c.threadLoadedList),
		handle(c, "thread/turns/list", c.turnsList),
		handle(c, "thread/items/list", c.itemsList),
		handle(c, "thread/unsubscribe", c.threadUnsubscribe).InLane(threadLane),
		handle(c, "thread/archive", c.threadArchive).InLane(threadLane),
		handle(c, "thread/unarchive", c.threadUnarchive).InLane(threadLane),
		handle(c, "thread/delete", c.threadDelete).InLane(threadLane),
		handle(c, "thread/name/set", c.threadNameSet),
		handle(c, "thread/revert", c.threadRevert).InLane(threadLane),
		handle(c, "thread/settings/update", c.threadSettingsUpdate).InLane(threadLane),
		handle(c, "thread/backgroundTerminals/list", c.terminalsList),
		handle(c, "thread/backgroundTerminals/terminate", c.terminalEnd),
		handle(c, "thread/backgroundTerminals/clean", c.terminalsClean),
		handle(c, "thread/goal/get", constant[wire.ThreadName](wire.Goal{Goal: null})),
	}
}

func (c *conn) turnMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		handle(c, "turn/start", c.turnStart).InLane(threadLane),
		handle(c, "turn/steer", c.turnSteer).InLane(threadLane),
		handle(c, "turn/interrupt", c.turnInterrupt).InLane(threadLane).Arriving(c.interruptArrives),
		handle(c, "thread/compact/start", c.compactStart).InLane(threadLane),
		handle(c, "thread/shellCommand", c.shellCommand).InLane(threadLane),
		handle(c, "review/start", c.reviewStart).InLane(threadLane),
	}
}

func (c *conn) queueMethods() []jsonrpc.Method {
	return []jsonrpc.Method{
		handle(c, "thread/queue/add", c.queueAdd).InLane(threadLane),
		handle(c, "thread/queue/list", c.queueList).InLane(threadLane),
		handle(c, "thread/queue/update", c.queueUpdate).InLane(threadLane),
		handle(c, "thread/queue/delete", c.queueDelete).InLane(threadLane),
		handle(c, "thread/queue/reorder", c.queueReorder).InLane(threadLane),
		handle(c, "thread/queue/start", c.queueStart).InLane(threadLane),
	}
}

// constant answers always the same.
func constant[P, R any](result R) func(context.Context, *jsonrpc.Request, P) (R, error) {
	return func(context.Context, *jsonrpc.Request, P) (R, error) { return result, nil }
}

func (c *conn) localMethods() []jsonrpc.Method {
	none := wire.Empty{Data: []wire.None{}}
	return []jsonrpc.Method{
		handle(c, "model/list", c.modelList),
		handle(c, "account/read", c.accountRead),
		handle(c, "config/read", c.configRead),
		handle(c, "config/batchWrite", c.configBatchWrite),
		handle(c, "config/value/write", c.configValueWrite),
		handle(c, "configRequirements/read", c.requirementsRead),
		handle(c, "collaborationMode/list", constant[wire.None](wire.Modes{Data: []wire.ModeChoice{{Name: "Plan", Mode: "plan"}, {Name: "Default", Mode: "default"}}})),
		handle(c, "permissionProfile/list", c.profileList),
		handle(c, "skills/list", c.skillsList),
		handle(c, "hooks/list", constant[wire.Anything](none)),
		handle(c, "mcpServerStatus/list", c.serverStatusList),
		handle(c, "command/exec", c.commandExec),
	}
}

// sent describes what clients are sent.
func sent() []jsonrpc.Method {
	return []jsonrpc.Method{
		jsonrpc.Notification[wire.ThreadStarted]("thread/started"),
		jsonrpc.Notification[wire.StatusChanged]("thread/status/changed"),
		jsonrpc.Notification[wire.ThreadRef]("thread/closed"),
		jsonrpc.Notification[wire.ThreadRef]("thread/archived"),
		jsonrpc.Notification[wire.ThreadRef]("thread/unarchived"),
		jsonrpc.Notification[wire.ThreadRef]("thread/deleted"),
		jsonrpc.Notification[wire.ThreadRef]("thread/reverted"),
		jsonrpc.Notification[wire.ThreadRef]("thread/queue/changed"),
		jsonrpc.Notification[wire.NameUpdated]("thread/name/updated"),
		jsonrpc.Notification[wire.SettingsUpdated]("thread/settings/updated"),
		jsonrpc.Notification[wire.UsageUpdated]("thread/tokenUsage/updated"),
		jsonrpc.Notification[wire.TurnChanged]("turn/started"),
		jsonrpc.Notification[wire.TurnChanged]("turn/completed"),
		jsonrpc.Notification[wire.DiffUpdated]("turn/diff/updated"),
		jsonrpc.Notification[wire.PlanUpdated]("turn/plan/updated"),
		jsonrpc.Notification[wire.ItemStarted]("item/started"),
		jsonrpc.Notification[wire.ItemCompleted]("item/completed"),
		jsonrpc.Notification[wire.Delta]("item/agentMessage/delta"),
		jsonrpc.Notification[wire.Delta]("item/commandExecution/outputDelta"),
		jsonrpc.Notification[wire.SummaryDelta]("item/reasoning/summaryTextDelta"),
		jsonrpc.Notification[wire.SummaryPart]("item/reasoning/summaryPartAdded"),
		jsonrpc.Notification[wire.RequestResolved]("serverRequest/resolved"),
		jsonrpc.Notification[wire.Failure]("error"),
		jsonrpc.Notification[wire.Warning]("warning"),
		jsonrpc.Ask[wire.CommandApproval, wire.Decision]("item/commandExecution/requestApproval"),
		jsonrpc.Ask[wire.FileApproval, wire.Decision]("item/fileChange/requestApproval"),
		jsonrpc.Ask[wire.Elicitation, wire.Decision]("mcpServer/elicitation/request"),
	}
}
