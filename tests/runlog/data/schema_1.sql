-- A store as version 0.1.0 wrote it (schema 1): runs of every outcome, and one that was killed.
PRAGMA application_id = 1195721042;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE blobs (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, data BLOB NOT NULL);
INSERT INTO "blobs" VALUES(1,X'3A995668FBDEACDBA4E2B9EE03DC80AC8C73CF2080FE769B4B6CD61D4D36E2E3',8,X'789C734A55C8CECC4BE102000B720278');
INSERT INTO "blobs" VALUES(2,X'043A718774C572BD8A25ADBEB1BFCD5C0256AE11CECF9F9C3F925D0E52BEAF89',1,X'789C2B060000740074');
INSERT INTO "blobs" VALUES(3,X'57BF2E776C2503A68BFC6E34BCE022E77903F377B4E8F6B4B570A0DBF006A871',27,X'789CAB562A4A2D2EC8CF2B4E8D4FCA4FA954B2520A4A2DC8A9543054AA05008E370994');
INSERT INTO "blobs" VALUES(4,X'A7098465D55AE3D8C75021A1B627170AE885CEEBB021592EFA105DB0788990A2',27,X'789CAB562A4A2D2EC8CF2B4E8D4FCA4FA954B2520A4A2DC8A9543052AA05008E3A0995');
CREATE TABLE cases (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        category TEXT NOT NULL,
        language TEXT NOT NULL,
        description TEXT NOT NULL,
        UNIQUE (name, category, language, description)
    );
INSERT INTO "cases" VALUES(1,'valid_warranty_001','valid-warranty','','Customer 1');
INSERT INTO "cases" VALUES(2,'valid_warranty_002','valid-warranty','','Customer 2');
CREATE TABLE checks (
        result INTEGER NOT NULL REFERENCES results (id),
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        reason TEXT NOT NULL,
        expected TEXT,
        actual TEXT,
        PRIMARY KEY (result, number)
    ) WITHOUT ROWID;
INSERT INTO "checks" VALUES(6,1,'email_sent','was not','True','False');
CREATE TABLE input_sets (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE);
INSERT INTO "input_sets" VALUES(1,X'9A44FFDA85D9653E7E3F6433D318B2CEEC1561D7399030C83316FA273E2E98DA');
CREATE TABLE inputs (
        input_set INTEGER NOT NULL REFERENCES input_sets (id),
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        hash BLOB NOT NULL,
        PRIMARY KEY (input_set, kind, name)
    ) WITHOUT ROWID;
INSERT INTO "inputs" VALUES(1,'instruction','main.md',X'3A995668FBDEACDBA4E2B9EE03DC80AC8C73CF2080FE769B4B6CD61D4D36E2E3');
CREATE TABLE results (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (number),
        position INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        case_id INTEGER NOT NULL REFERENCES cases (id),
        verdict TEXT NOT NULL CHECK (verdict IN ('passed', 'failed', 'error', 'invalid')),
        duration_ms REAL NOT NULL,
        calls INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cache_read_tokens INTEGER NOT NULL,
        cache_write_tokens INTEGER NOT NULL,
        cost_usd REAL,
        latency_ms INTEGER NOT NULL,
        input_set INTEGER REFERENCES input_sets (id),
        source INTEGER REFERENCES blobs (id),
        request INTEGER REFERENCES blobs (id),
        response INTEGER REFERENCES blobs (id),
        trace INTEGER REFERENCES blobs (id),
        judgement INTEGER REFERENCES blobs (id)
    );
INSERT INTO "results" VALUES(1,1,1,1,1,'passed',0.0,0,0,0,0,0,0.0,0,1,2,NULL,3,NULL,NULL);
INSERT INTO "results" VALUES(2,1,2,1,2,'passed',0.0,0,0,0,0,0,0.0,0,1,NULL,NULL,4,NULL,NULL);
INSERT INTO "results" VALUES(3,2,1,1,1,'passed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,3,NULL,NULL);
INSERT INTO "results" VALUES(4,2,2,1,2,'passed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,4,NULL,NULL);
INSERT INTO "results" VALUES(5,3,1,1,1,'passed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,3,NULL,NULL);
INSERT INTO "results" VALUES(6,3,2,1,2,'failed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,4,NULL,NULL);
INSERT INTO "results" VALUES(7,4,1,1,1,'passed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,3,NULL,NULL);
INSERT INTO "results" VALUES(8,5,1,1,1,'passed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,3,NULL,NULL);
INSERT INTO "results" VALUES(9,5,2,1,2,'passed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,4,NULL,NULL);
INSERT INTO "results" VALUES(10,6,1,1,1,'error',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,3,NULL,NULL);
INSERT INTO "results" VALUES(11,7,1,1,1,'passed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,3,NULL,NULL);
INSERT INTO "results" VALUES(12,7,1,2,1,'failed',0.0,0,0,0,0,0,0.0,0,NULL,NULL,NULL,3,NULL,NULL);
CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        command TEXT NOT NULL,
        suite TEXT NOT NULL,
        selection TEXT NOT NULL,
        agent TEXT NOT NULL,
        llm TEXT NOT NULL,
        model TEXT NOT NULL,
        parameters TEXT NOT NULL,
        options TEXT NOT NULL,
        repeat INTEGER NOT NULL,
        threshold REAL NOT NULL,
        require_proof INTEGER NOT NULL,
        package_version TEXT NOT NULL,
        git_revision TEXT,
        git_dirty INTEGER,
        planned INTEGER NOT NULL,
        started TEXT NOT NULL,
        ended TEXT,
        duration_s REAL NOT NULL DEFAULT 0,
        outcome TEXT CHECK (outcome IN ('passed', 'failed', 'interrupted', 'crashed')),
        exit_code INTEGER,
        total INTEGER NOT NULL DEFAULT 0,
        passed INTEGER NOT NULL DEFAULT 0,
        failed INTEGER NOT NULL DEFAULT 0,
        error INTEGER NOT NULL DEFAULT 0,
        invalid INTEGER NOT NULL DEFAULT 0,
        tokens INTEGER NOT NULL DEFAULT 0,
        cost_usd REAL DEFAULT 0
    );
INSERT INTO "runs" VALUES(1,'20260118T100001-00000001','eval','evals/scenarios','[]','','offline','','{}','{}',1,100.0,0,'0.1.0','0123abc',0,2,'2026-01-18T10:00:00Z','2026-01-18T10:00:01Z',1.0,'passed',0,2,2,0,0,0,0,0.0);
INSERT INTO "runs" VALUES(2,'20260118T100002-00000002','eval','evals/scenarios','[]','','offline','','{}','{}',1,99.9,1,'0.1.0','0123abc',0,2,'2026-01-18T10:00:00Z','2026-01-18T10:00:01Z',1.0,'failed',4,2,2,0,0,0,0,0.0);
INSERT INTO "runs" VALUES(3,'20260118T100003-00000003','eval','evals/scenarios','[]','','offline','','{}','{}',1,99.0,1,'0.1.0','0123abc',0,2,'2026-01-18T10:00:00Z','2026-01-18T10:00:01Z',1.0,'failed',4,2,1,1,0,0,0,0.0);
INSERT INTO "runs" VALUES(4,'20260118T100004-00000004','eval','evals/scenarios','[]','','offline','','{}','{}',1,100.0,1,'0.1.0','0123abc',0,2,'2026-01-18T10:00:00Z','2026-01-18T10:00:01Z',1.0,'interrupted',130,1,1,0,0,0,0,0.0);
INSERT INTO "runs" VALUES(5,'20260118T100005-00000005','eval','evals/scenarios','[]','','offline','','{}','{}',1,100.0,0,'0.1.0','0123abc',0,2,'2026-01-18T10:00:00Z','2026-01-18T10:00:01Z',1.0,'failed',4,2,2,0,0,0,0,0.0);
INSERT INTO "runs" VALUES(6,'20260118T100006-00000006','grade','tasks','[]','','','','{}','{}',1,100.0,0,'0.1.0','0123abc',0,2,'2026-01-18T10:00:00Z','2026-01-18T10:00:01Z',1.0,'crashed',1,1,0,0,1,0,0,0.0);
INSERT INTO "runs" VALUES(7,'20260118T100007-00000007','eval','evals/scenarios','[]','','offline','','{}','{}',1,100.0,1,'0.1.0',NULL,NULL,3,'2026-01-18T10:00:00Z',NULL,0.0,NULL,NULL,0,0,0,0,0,0,0.0);
CREATE INDEX runs_of_suite ON runs (command, suite, selection, agent, llm, number);
CREATE INDEX runs_without_end ON runs (number) WHERE outcome IS NULL;
CREATE UNIQUE INDEX results_of_run ON results (run, position, repetition);
CREATE INDEX results_of_case ON results (case_id, run);
CREATE VIEW result_list AS
        SELECT runs.id AS run, runs.number AS run_number, cases.name, cases.category, cases.language,
               results.repetition, results.verdict, results.duration_ms, results.cost_usd, cases.description,
               results.id AS result
        FROM results JOIN runs ON runs.number = results.run JOIN cases ON cases.id = results.case_id;
COMMIT;
