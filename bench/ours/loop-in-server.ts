// A loop inside the server over claim and finish: the reference of a drain. Nothing travels, and no handler runs.

/** The statement that claims so many jobs of a kind, finishes them, and commits both, until nothing is left. */
export function loopInServer(workerId: string, batch: number, kind: string): string {
  const wants = JSON.stringify([{ queue: 'default', limit: batch, kinds: [kind], alike: true }])
  // Placeholders are not allowed in DO. Jobs that are alike are completed together, as a worker does it.
  return `do $$
    declare
      v_claim json;
      v_done jsonb;
    begin
      loop
        v_claim := rowlock.claim('${workerId}', '${wants}');
        commit;
        select jsonb_build_object('complete', jsonb_agg(e.ended))
          into v_done
          from (select jsonb_build_object(
                         'claim_id', v_claim ->> 'claim_id', 'queue', a ->> 'queue', 'ids', a ->> 'ids') as ended
                  from json_array_elements(v_claim -> 'alike') as a
                union all
                select jsonb_build_object('claim_id', v_claim ->> 'claim_id', 'id', j ->> 0)
                  from json_array_elements(v_claim -> 'jobs') as j) as e;
        exit when v_done -> 'complete' = 'null';
        perform rowlock.finish(v_done);
        commit;
      end loop;
    end $$`
}
