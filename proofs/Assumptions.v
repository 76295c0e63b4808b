(** What each main theorem rests on.  Every line printed while this file is
    compiled must be "Closed under the global context": models, tools,
    primitives, samples and policies are parameters ([host]) of the theorems,
    not axioms.  [check.sh] fails otherwise. *)

Require Import Entail.Thm.Confinement Entail.Thm.Noninterference Entail.Thm.Flow.

Print Assumptions confinement.
Print Assumptions trace_grows.
Print Assumptions noninterference_low.
Print Assumptions noninterference_general.
Print Assumptions noninterference_values.
Print Assumptions noninterference_errors.
Print Assumptions noninterference_traces.
Print Assumptions noninterference.
Print Assumptions noninterference_insulated_secrecy.
Print Assumptions noninterference_insulated_integrity.
Print Assumptions fork_conservative.
