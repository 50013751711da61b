"""Several stores on one MariaDB database: what holds on PostgreSQL holds here, too."""

from tests.store.postgres.test_nodes import (
    test_a_claim_repeated_while_it_is_in_progress_waits_for_its_answer as test_repeated_claims,
)
from tests.store.postgres.test_nodes import (
    test_groups_stay_in_order_with_several_senders_and_finishers as test_groups_stay_in_order,
)
from tests.store.postgres.test_nodes import (
    test_max_messages_is_kept_by_several_nodes as test_max_messages,
)
from tests.store.postgres.test_nodes import (
    test_nodes_sign_receipts_with_the_same_secret as test_secret,
)
from tests.store.postgres.test_nodes import (
    test_one_group_shared_by_all_is_never_leased_twice_nor_stuck as test_one_group,
)
from tests.store.postgres.test_nodes import (
    test_one_of_two_nodes_takes_the_step_and_the_other_does_not_wait as test_steps_of_moves,
)
from tests.store.postgres.test_nodes import (
    test_one_of_two_nodes_that_start_a_move_at_once_is_refused as test_starts_of_moves,
)
from tests.store.postgres.test_nodes import (
    test_the_same_key_from_two_nodes_is_one_message as test_dedup_keys,
)
from tests.store.postgres.test_nodes import (
    test_two_nodes_may_make_the_tables_of_the_same_day as test_new_days,
)
from tests.store.postgres.test_nodes import (
    test_two_nodes_move_every_message_once_and_count_it_once as test_moves,
)
from tests.store.postgres.test_nodes import (
    test_two_nodes_never_lease_the_same_message as test_claims,
)
from tests.store.postgres.test_nodes import (
    test_two_nodes_that_change_settings_do_not_overwrite_each_other as test_settings,
)

__all__ = [
    "test_claims",
    "test_dedup_keys",
    "test_groups_stay_in_order",
    "test_max_messages",
    "test_moves",
    "test_new_days",
    "test_one_group",
    "test_repeated_claims",
    "test_secret",
    "test_settings",
    "test_starts_of_moves",
    "test_steps_of_moves",
]
