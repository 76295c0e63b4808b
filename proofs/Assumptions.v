(** What each main theorem rests on.  Every line printed while this file is
    compiled must be "Closed under the global context": models, tools,
    primitives, samples and policies are parameters of the theorems ([host],
    [world]), not axioms.  [check.sh] fails otherwise. *)

Require Import Entail.Thm.Confinement Entail.Thm.Noninterference Entail.Thm.Flow Entail.Thm.Planned.
Require Import Entail.Thm.Examples Entail.Thm.Choice Entail.Thm.Keys.
Require Import Entail.Spec.Lattices Entail.Thm.Instances Entail.Thm.Sets Entail.Thm.Runs Entail.Thm.Turns.
Require Import Entail.Thm.TypeSafety Entail.Thm.Algebra Entail.Thm.Cost Entail.Thm.Bounds.
Require Import Entail.Thm.Termination Entail.Thm.Lint Entail.Thm.Loops Entail.Thm.Fuel Entail.Thm.Probabilistic.

(* Flow *)
Print Assumptions confinement.
Print Assumptions confinement_result.
Print Assumptions trace_grows.
Print Assumptions noninterference_low.
Print Assumptions noninterference_general.
Print Assumptions noninterference_values.
Print Assumptions noninterference_errors.
Print Assumptions noninterference_traces.
Print Assumptions noninterference.
Print Assumptions noninterference_insulated_secrecy.
Print Assumptions noninterference_insulated_integrity.
Print Assumptions noninterference_counts.
Print Assumptions noninterference_races.
Print Assumptions noninterference_delegated.
Print Assumptions see_rel.
Print Assumptions primitive_rel.
Print Assumptions stamp_rel.
Print Assumptions fill_rel.
Print Assumptions perform_rel.
Print Assumptions confirmed_rel.
Print Assumptions present_rel.
Print Assumptions next_run_related.
Print Assumptions keys_equal.
Print Assumptions noninterference_keys.
Print Assumptions number_visible.
Print Assumptions keys_differ.
Print Assumptions channel_counter_leaks.
Print Assumptions fork_conservative.
Print Assumptions more_fuel.
Print Assumptions result_unique.
Print Assumptions probabilistic_noninterference.
Print Assumptions top_greatest.
Print Assumptions sources_inclusion.
Print Assumptions readers_inclusion.
Print Assumptions two_axis_secure.
Print Assumptions endorsed_secure.
Print Assumptions sources_readers_secure.
Print Assumptions levels_secure.
Print Assumptions hypotheses_met.
Print Assumptions two_axis_tour.
Print Assumptions endorsed_tour.
Print Assumptions sources_readers_tour.
Print Assumptions levels_tour.
Print Assumptions args_prepared.
Print Assumptions planned_prepared.
Print Assumptions prepared_in_sight.
Print Assumptions prepared_in_both.
Print Assumptions every_call_checked.
Print Assumptions every_call_approved.
Print Assumptions bounded_choice.
Print Assumptions bounded_choice_approved.
Print Assumptions bounded_choice_both.
Print Assumptions choice_of_planned.
Print Assumptions choice_from_set.
Print Assumptions chosen_one.
Print Assumptions chosen_together.
Print Assumptions chosen_within.
Print Assumptions set_of_path.
Print Assumptions set_of_answer.
Print Assumptions misformed_rel.
Print Assumptions every_call_formed.
Print Assumptions kept_rel.
Print Assumptions noninterference_chosen.
Print Assumptions chosen_traces.
Print Assumptions chosen_beginning.
Print Assumptions choice_in_sight.
Print Assumptions choice_alike.
Print Assumptions noninterference_beside.
Print Assumptions noninterference_replanned.
Print Assumptions at_most_replanned.
Print Assumptions answered_rel.
Print Assumptions at_most_bound.
Print Assumptions at_most_races.
Print Assumptions calls_counted.
Print Assumptions confirmed_shown.
Print Assumptions planned_data_forges.
Print Assumptions control_refusal_at_pc_leaks.
Print Assumptions argument_refusal_at_bound_leaks.
Print Assumptions bare_or_record_leaks.
Print Assumptions policy_of_parts_leaks.
Print Assumptions count_at_pc_leaks.
Print Assumptions secret_set_leaks.
Print Assumptions stamp_without_own_label_leaks.
Print Assumptions type_at_container_leaks.
Print Assumptions form_of_a_part_leaks.
Print Assumptions chosen_tool_forges.
Print Assumptions asked_by_secret_set_leaks.
Print Assumptions told_of_code_leaks.
Print Assumptions place_of_code_leaks.
Print Assumptions racing_branches_leak.
Print Assumptions asked_if_refused.
Print Assumptions par_to_end_leaks.
Print Assumptions guard_unraised_leaks.
Print Assumptions guard_unraised_error_leaks.
Print Assumptions endorse_unraised_leaks.
Print Assumptions missing_unchecked_leaks.
Print Assumptions shared_capacity_leaks.
Print Assumptions secret_use_leaks.
Print Assumptions shared_clock_leaks.
Print Assumptions secret_signal_leaks.
Print Assumptions global_counter_leaks.

(* Types *)
Print Assumptions weakening.
Print Assumptions store_weakening.
Print Assumptions substitution.
Print Assumptions canonical_forms.
Print Assumptions progress.
Print Assumptions preservation.
Print Assumptions preservation_steps.
Print Assumptions type_safety.
Print Assumptions refined_value.
Print Assumptions steps_deterministic.
Print Assumptions termination.
Print Assumptions function_in_store_diverges.
Print Assumptions comp_assoc.
Print Assumptions comp_id_left.
Print Assumptions comp_id_right.
Print Assumptions case_known.
Print Assumptions fst_pair.
Print Assumptions snd_pair.
Print Assumptions guard_guard.

(* Bounds *)
Print Assumptions weigh_sound.
Print Assumptions loop_cost.
Print Assumptions unfolding_bound.
Print Assumptions unfolding_bound_affine.
Print Assumptions unfolding_bound_geometric.
Print Assumptions cost_bound.
Print Assumptions cost_bound_affine.
Print Assumptions twice_unfolds.
Print Assumptions seed_bound_fails.
Print Assumptions seed_cost_bound_fails.

(* Lint rules *)
Print Assumptions L001_anything.
Print Assumptions L003_vacuous.
Print Assumptions L006_identity.
Print Assumptions L005_stuck.
Print Assumptions L005_untypable.
Print Assumptions L013_default.
Print Assumptions L004_truncated.
Print Assumptions L004_diverges.
Print Assumptions L004_no_value.
Print Assumptions L004_runs_to_the_bound.
