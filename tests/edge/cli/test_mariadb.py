"""The commands on a MariaDB store, and a program that embeds one."""

from contextlib import closing

from penstock.client.app import Penstock


def test_migrate_doctor_and_an_embedded_program(run, mariadb_url):
    where = ("--store", mariadb_url)
    assert "applied 0021_everything_else" in run("migrate", *where).out
    assert run("migrate", *where).out == "the schema is up to date\n"

    app = Penstock(mariadb_url.replace("mysql://", "mariadb://"))

    @app.job(queue="mail")
    def send_mail(to: str) -> None:
        print(to)

    with closing(app):
        send_mail.enqueue("ada@example.org")

    ran = run("doctor", *where, "--json")
    grades = {record["name"]: record["grade"] for record in ran.records}
    assert ran.code == 0
    assert {"mariadb", "innodb_flush_log_at_trx_commit", "schema", "books"} <= set(grades)
    assert "fail" not in grades.values()
    assert "the counters of 1 queues agree" in ran.out


def test_a_backup_is_left_to_mariadbs_own_tools(run, tmp_path, mariadb_url):
    copied = run("backup", tmp_path / "copy.db", "--store", mariadb_url)

    assert copied.code == 1
    assert "use MariaDB's own tools for this: mariadb-dump" in copied.err
