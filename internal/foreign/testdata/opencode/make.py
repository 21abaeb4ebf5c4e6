# Makes opencode.db and opencode.db-wal with SQLite itself, as opencode 1.18 lays them out: python3 make.py
import json, os, shutil, sqlite3

db = '/tmp/opencode.db'
for name in (db, db + '-wal', db + '-shm'):
    if os.path.exists(name):
        os.remove(name)
c = sqlite3.connect(db, isolation_level=None)
c.execute('pragma page_size=512')
c.execute('pragma journal_mode=wal')
c.execute('pragma wal_autocheckpoint=0')
c.execute('CREATE TABLE `session` (`id` text PRIMARY KEY, `parent_id` text, `directory` text NOT NULL, `title` text NOT NULL, `version` text NOT NULL, `revert` text, `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `time_archived` integer)')
c.execute('CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer NOT NULL, `data` text NOT NULL)')
c.execute('CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL, `data` text NOT NULL)')
c.execute('pragma wal_checkpoint(truncate)')
T = 1793527200000

def session(id, parent=None, revert=None):
    c.execute('insert into session values(?,?,?,?,?,?,?,?,?)', (id, parent, '/work/project', 'title of ' + id, '1.18.33', json.dumps(revert) if revert else None, T, T + 9000, None))

def message(id, session, at, data):
    c.execute('insert into message values(?,?,?,?)', (id, session, T + at, json.dumps(dict(data, time={'created': T + at, **data.get('time', {})}))))

def part(id, message, data):
    c.execute('insert into part values(?,?,?,?)', (id, message, 's', json.dumps(data)))

c.execute('begin')
session('ses_1')
message('msg_1', 'ses_1', 0, {'role': 'user'})
part('prt_1', 'msg_1', {'type': 'text', 'text': '"fix the test"'})
part('prt_2', 'msg_1', {'type': 'text', 'text': 'inserted', 'synthetic': True})
message('msg_2', 'ses_1', 1000, {'role': 'assistant', 'modelID': 'gpt-x', 'time': {'completed': T + 2000}, 'tokens': {'input': 5, 'output': 7, 'reasoning': 1, 'cache': {'read': 2, 'write': 0}}})
part('prt_3', 'msg_2', {'type': 'reasoning', 'text': 'thinking'})
part('prt_4', 'msg_2', {'type': 'tool', 'callID': 'call_1', 'tool': 'bash', 'state': {'status': 'completed', 'input': {'command': 'go test'}, 'output': 'x' * 3000, 'metadata': {'exit': 1}, 'time': {'start': T + 1100, 'end': T + 1600}}})
message('msg_3', 'ses_1', 3000, {'role': 'assistant', 'modelID': 'gpt-x'})
part('prt_5', 'msg_3', {'type': 'tool', 'callID': 'call_2', 'tool': 'bash', 'state': {'status': 'running', 'input': {'command': 'sleep 9'}, 'time': {'start': T + 3100}}})
session('ses_2', parent='ses_1', revert={'messageID': 'msg_6'})
message('msg_4', 'ses_2', 0, {'role': 'user'})
part('prt_6', 'msg_4', {'type': 'text', 'text': 'first'})
message('msg_5', 'ses_2', 10, {'role': 'assistant', 'time': {'completed': T + 20}})
part('prt_7', 'msg_5', {'type': 'text', 'text': 'one'})
message('msg_6', 'ses_2', 30, {'role': 'user'})
part('prt_8', 'msg_6', {'type': 'text', 'text': 'reverted'})
c.execute('commit')
for suffix in ('', '-wal'):
    shutil.copy(db + suffix, 'opencode.db' + suffix)
