# Makes sample.db and sample.db-wal with SQLite itself: python3 make.py
import os, shutil, sqlite3

db = '/tmp/sample.db'
for name in (db, db + '-wal', db + '-shm'):
    if os.path.exists(name):
        os.remove(name)
c = sqlite3.connect(db, isolation_level=None)
c.execute('pragma page_size=512')
c.execute('pragma journal_mode=wal')
c.execute('pragma wal_autocheckpoint=0')
c.execute('CREATE TABLE `session` (`id` text PRIMARY KEY, "n" integer DEFAULT (1+2), [x] real, data text NOT NULL, CONSTRAINT `c` FOREIGN KEY (`id`) REFERENCES `b`(`id`))')
c.execute('CREATE TABLE num (id INTEGER PRIMARY KEY, v blob)')
c.execute('begin')
for i in range(60):
    c.execute('insert into session values(?,?,?,?)', ('s%03d' % i, (-1)**i * 7**(i % 20), i / 4, 'd' * (i * 25)))
for i in (1, 5, 300):
    c.execute('insert into num values(?,?)', (i, b'\x00\x01'))
c.execute('commit')
c.execute('pragma wal_checkpoint(truncate)')
# What follows is in the log only.
c.execute('begin')
c.execute("update session set data='changed' where id='s007'")
c.execute("insert into session values('new',1,2.5,?)", ('z' * 3000,))
c.execute('commit')
c.execute('alter table session add column late text')
# And this is not committed.
c.execute('pragma cache_size=2')
c.execute('begin')
c.execute('update session set n=99')
for suffix in ('', '-wal'):
    shutil.copy(db + suffix, 'sample.db' + suffix)
c.execute('rollback')
