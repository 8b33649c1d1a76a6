"""Technical chats in English: commands, errors and versions."""

from __future__ import annotations

from bench.recall.topic import FORM, SAME, SYNONYM, TECHNICAL, TIME, Topic

TECHNICAL_TOPICS = (
    Topic(
        values=(
            "ModuleNotFoundError: No module named 'yaml'|the missing yaml module",
            "ECONNREFUSED 127.0.0.1:5432|the refused connection to port 5432",
            "fatal: refusing to merge unrelated histories|unrelated histories",
            "OSError: [Errno 28] No space left on device|the full disk",
            "x509: certificate has expired or is not yet valid|the expired certificate",
            "413 Request Entity Too Large|uploads that are too large",
        ),
        details=(
            "a restart of the service after the config change",
            "deleting the lock file by hand",
            "pinning the dependency one version lower",
            "an entry in the hosts file",
        ),
        own=("On my server I got `{a}`. What helped in the end was {detail}.",),
        about_others=("{who} ran into `{a}`. What helped in the end was {detail}.",),
        replies=(
            "Noted. I would also write that into the runbook.",
            "Good. That error often comes back after updates.",
        ),
        mentions=(
            "The log is full of warnings again, but `{a}` is not among them.",
            "Is `{a}` a problem of the client?",
        ),
        questions=(
            (TECHNICAL, "What helped {who} against {a}?"),
            (TECHNICAL, 'How did {who} solve "{a}"?'),
            (FORM, "What was the help for {who} with {b}?"),
            (SYNONYM, "How did {who} fix {b}?"),
        ),
    ),
    Topic(
        values=(
            "docker run --rm -p 8080:80|docker run",
            "git rebase --onto main|git rebase",
            "rsync -avz --delete|rsync",
            "ffmpeg -i in.mov -crf 23|ffmpeg",
            "kubectl rollout undo deploy/api|kubectl rollout",
            "pip install -e .[dev]|pip install",
        ),
        details=(
            "needs the trailing slash",
            "fails without sudo on the old host",
            "took eleven minutes",
            "must run from the root of the repository",
        ),
        own=("I used `{a}` for it, and note: it {detail}.",),
        about_others=("{who} used `{a}` for it, and note: it {detail}.",),
        replies=("Thanks, I will keep that command.", "There is also a dry-run flag, by the way."),
        mentions=("Where is the manual page of {b}?", "I always have to look up the options of {b}."),
        questions=(
            (TECHNICAL, "What must be noted about `{a}` as used by {who}?"),
            (TECHNICAL, "{who} {b} note"),
            (FORM, "What is to be noted when using {b} like {who}?"),
        ),
    ),
    Topic(
        values=(
            "PostgreSQL 16.4|PostgreSQL",
            "Python 3.12.5|Python",
            "nginx 1.27.1|nginx",
            "Node 22.6.0|Node",
            "Kafka 3.8.0|Kafka",
            "Terraform 1.9.5|Terraform",
        ),
        details=(
            "the old plugin is gone",
            "the service starts twice as fast",
            "two deprecated settings had to be renamed",
            "the rollback plan was needed once",
        ),
        own=("I upgraded production to {a}; {detail}.", "Production runs on {a} since tonight; {detail}."),
        about_others=(
            "{who} upgraded production to {a}; {detail}.",
            "Thanks to {who} production runs on {a}; {detail}.",
        ),
        replies=("Any problems with the migration?", "Then staging can follow."),
        mentions=("The release notes of {a} are forty pages long.", "Who still needs the {b} training?"),
        questions=(
            (TECHNICAL, "What changed when {who} upgraded to {a}?"),
            (FORM, "Which {b} version is in production since {whose} upgrading?"),
            (SYNONYM, "What broke or improved when {who} updated {b}?"),
            (TIME, "Which upgrade of production did {who} do in {month}?"),
        ),
    ),
    Topic(
        values=(
            "the staging database|staging",
            "the build cache|cache",
            "the mail relay|mail",
            "the billing service|invoicing",
            "the log archive|logging",
        ),
        details=("10.4.7.21", "s3://cold-store/2019", "port 9443 behind the proxy", "the host called umbra"),
        own=("I moved {a} to {detail}.", "{a} now lives at {detail}, I changed it today."),
        about_others=("{who} moved {a} to {detail}.", "{a} now lives at {detail}, {who} changed it today."),
        replies=("I have updated the inventory.", "Good to know, the old address will be switched off."),
        mentions=("Were there complaints about {a} lately?", "The bill for {a} is due."),
        questions=(
            (SAME, "Where did {who} move {a}?"),
            (SYNONYM, "Under which address is {b} reachable now that {who} migrated it?"),
            (TIME, "What did {who} move to a new address on {date}?"),
        ),
    ),
    Topic(
        values=(
            "a race condition in the scheduler|scheduler",
            "a memory leak in the image parser|parser",
            "an off-by-one in the pagination|paging",
            "a time zone bug in the reports|reports",
            "a deadlock in the import job|importing",
        ),
        details=("commit 4f9c2ab", "a two-line patch", "removing a global variable", "a test with a fake clock"),
        own=("I found {a}. The fix was {detail}.",),
        about_others=("{who} found {a}. The fix was {detail}.",),
        replies=("Nice catch. Is there a regression test?", "That explains the flaky nights."),
        mentions=("We talked about {a} at lunch, in general.", "We need a drawing of {b} some day."),
        questions=(
            (SAME, "What was the fix after {who} found {a}?"),
            (FORM, "How was {a} fixed that {who} was finding?"),
            (SYNONYM, "How did {who} resolve the {b} defect?"),
            (TIME, "Which bug did {who} find in {month}?"),
        ),
    ),
)
